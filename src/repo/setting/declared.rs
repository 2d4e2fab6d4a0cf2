//! Every setting that Fossil knows, and what becomes of it here. The README tells users the same.

/// What OCX does with a setting of Fossil's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Here {
    /// It acts as it does in Fossil.
    Heeded,
    /// What it asks for is not done. The answer of a save says so.
    Named,
    /// It is about something that OCX does not do, or does in one way only.
    WithoutMeaning,
}

/// A setting of Fossil's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Whether a file `.fossil-settings/NAME` in the tree counts before the repository.
    pub versionable: bool,
    /// What becomes of it.
    pub here: Here,
}

/// All of them, by name.
pub const SETTINGS: [Setting; 117] = [
    without("access-log"),
    without("admin-log"),
    heeded("allow-symlinks"),
    without("anon-cookie-lifespan"),
    without("auto-captcha"),
    without("auto-hyperlink"),
    without("auto-hyperlink-delay"),
    without("auto-hyperlink-mouseover"),
    without("auto-shun"),
    without("autosync"),
    without("autosync-tries"),
    without("backoffice-disable"),
    without("backoffice-logfile"),
    without("backoffice-nodelay"),
    heeded("binary-glob").in_tree(),
    heeded("case-sensitive"),
    without("chat-alert-sound"),
    without("chat-initial-history"),
    without("chat-inline-images"),
    without("chat-keep-count"),
    without("chat-keep-days"),
    without("chat-poll-timeout"),
    without("chat-timeline-user"),
    without("clean-glob").in_tree(),
    named("clearsign"),
    without("comment-format"),
    heeded("crlf-glob").in_tree(),
    heeded("crnl-glob").in_tree(),
    without("default-csp"),
    without("default-perms"),
    without("default-skin"),
    without("diff-binary"),
    without("diff-command"),
    heeded("dont-commit"),
    heeded("dont-push"),
    heeded("dotfiles").in_tree(),
    without("editor"),
    without("email-admin"),
    without("email-listid"),
    without("email-renew-interval"),
    without("email-self"),
    without("email-send-command"),
    without("email-send-db"),
    without("email-send-dir"),
    without("email-send-method"),
    without("email-send-relayhost"),
    without("email-subname"),
    without("email-url"),
    heeded("empty-dirs").in_tree(),
    heeded("encoding-glob").in_tree(),
    without("exec-rel-paths"),
    without("fileedit-glob"),
    heeded("forbid-delta-manifests"),
    without("forum-close-policy"),
    without("forum-title"),
    without("gdiff-command"),
    without("gmerge-command"),
    without("hash-digits"),
    named("hooks"),
    without("http-port"),
    without("https-login"),
    heeded("ignore-glob").in_tree(),
    without("keep-glob").in_tree(),
    heeded("large-file-size"),
    without("localauth"),
    without("lock-timeout"),
    heeded("main-branch"),
    without("mainmenu"),
    heeded("manifest").in_tree(),
    without("max-cache-entry"),
    without("max-loadavg"),
    heeded("max-upload"),
    without("mimetypes").in_tree(),
    without("mtime-changes"),
    without("mv-rm-files"),
    without("pgp-command"),
    without("preferred-diff-type"),
    without("proxy"),
    without("raw-bgcolor"),
    without("redirect-to-https"),
    without("regexp-limit"),
    without("relative-paths"),
    without("repo-cksum"),
    without("repolist-skin"),
    without("robot-exception"),
    without("robot-restrict"),
    without("robot-zip-leaf"),
    without("robot-zip-tag"),
    without("robots-txt"),
    without("safe-html"),
    without("self-pw-reset"),
    without("self-register"),
    without("sitemap-extra"),
    without("ssh-command"),
    without("ssl-ca-location"),
    without("ssl-identity"),
    without("suggested-downloads"),
    without("tcl"),
    without("tcl-setup"),
    without("tclsh"),
    without("th1-docs"),
    named("th1-hooks"),
    without("th1-setup"),
    without("th1-uri-regexp"),
    without("ticket-default-report"),
    without("timeline-default-style"),
    without("timeline-hard-newlines"),
    without("timeline-mark-leaves"),
    without("timeline-plaintext"),
    without("timeline-truncate-at-blank"),
    without("timeline-tslink-info"),
    without("timeline-utc"),
    without("user-color-map"),
    without("uv-sync"),
    without("verify-comments"),
    without("vuln-report"),
    without("web-browser"),
];

/// What Fossil keeps like a setting without declaring it, and OCX heeds: the policy for the names of new artifacts, and
/// whether manifests with a baseline were seen.
pub const VARIABLES: [&str; 2] = ["hash-policy", "seen-delta-manifest"];

/// Settings of OCX's own.
pub const OWN: [&str; 1] = [REFUSE_HOOKS];

/// If it is on, nothing is saved where Fossil would run a hook first.
pub const REFUSE_HOOKS: &str = "ocx-refuse-hooks";

/// The setting of this name, if Fossil declares one.
#[must_use]
pub fn declared(name: &str) -> Option<&'static Setting> {
    let at = SETTINGS.binary_search_by(|setting| setting.name.cmp(name)).ok()?;
    Some(&SETTINGS[at])
}

const fn heeded(name: &'static str) -> Setting {
    Setting { name, versionable: false, here: Here::Heeded }
}

const fn named(name: &'static str) -> Setting {
    Setting { name, versionable: false, here: Here::Named }
}

const fn without(name: &'static str) -> Setting {
    Setting { name, versionable: false, here: Here::WithoutMeaning }
}

impl Setting {
    const fn in_tree(self) -> Self {
        Self { versionable: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_found_by_its_name() {
        for setting in &SETTINGS {
            assert_eq!(declared(setting.name), Some(setting));
        }
        assert_eq!(declared("hash-policy"), None);
    }
}
