//! The environment of a command: an allow-list of the caller's variables, never all of them.
//!
//! A variable gets through if programs need it to find their tools and if people keep no secrets in it. Everything
//! else stays out: tokens, passwords, agent sockets, the settings of the program that OCX runs in.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "PKG_CONFIG_PATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOPROXY",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYENV_ROOT",
    "UV_CACHE_DIR",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "PERL5LIB",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "NIX_PATH",
    "NIX_PROFILES",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
];

/// The variables that a command starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes from `variables` what the allow-list lets through. `TERM=dumb` and a `PATH` are always there.
    pub fn from(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut kept: BTreeMap<_, _> = variables.into_iter().filter(|(n, v)| allowed(n, v)).collect();
        kept.entry("PATH".into()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".into());
        kept.insert("TERM".into(), "dumb".into());
        Self { variables: kept }
    }

    /// Adds one variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Name and value of each variable, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn allowed(name: &OsStr, value: &OsStr) -> bool {
    // A proxy's address or a module proxy's may carry a login before an `@`.
    let holds_login = name.to_string_lossy().to_ascii_lowercase().ends_with("proxy")
        && value.as_encoded_bytes().contains(&b'@');
    let listed = name.to_str().is_some_and(|name| ALLOWED.contains(&name) || name.starts_with("LC_"));
    listed && !holds_login
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let shown = |(n, v): (&OsStr, &OsStr)| format!("{}={}", n.to_string_lossy(), v.to_string_lossy());
        Environment::from(pairs).variables().map(shown).collect()
    }

    #[test]
    fn r09_secrets_stay_out() {
        let given = [
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("CARGO_REGISTRY_TOKEN", "s"),
            ("FOSSIL_PASSWORD", "s"),
            ("SSH_AUTH_SOCK", "/s"),
            ("HTTPS_PROXY", "http://me:secret@proxy:1"),
            ("HTTP_PROXY", "http://proxy:1"),
            ("LC_ALL", "C.UTF-8"),
            ("PATH", "/bin"),
            ("TERM", "xterm"),
        ];
        assert_eq!(seen(&given), ["HTTP_PROXY=http://proxy:1", "LC_ALL=C.UTF-8", "PATH=/bin", "TERM=dumb"]);
    }

    #[test]
    fn a_path_is_always_there() {
        assert_eq!(seen(&[]), ["PATH=/usr/local/bin:/usr/bin:/bin", "TERM=dumb"]);
    }
}
