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

/// What every command gets, whatever the caller has: words and numbers look the same everywhere.
const FIXED: [(&str, &str); 3] = [("CI", "1"), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
/// What makes a name look like a secret's.
const SECRET: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "PRIVATE_KEY",
    "ACCESS_KEY",
    "CREDENTIAL",
    "AUTH_SOCK",
];

/// The variables that a command starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes from `variables` what the allow-list lets through. `CI=1`, `LANG=C.UTF-8`, `TERM=dumb` and a `PATH` are
    /// always there.
    pub fn from(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut kept: BTreeMap<_, _> = variables.into_iter().filter(|(n, v)| allowed(n, v)).collect();
        kept.retain(|name, value| name != "PATH" || !value.is_empty());
        kept.entry("PATH".into()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".into());
        kept.extend(FIXED.map(|(name, value)| (name.into(), value.into())));
        Self { variables: kept }
    }

    /// Adds one variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// The value of a variable.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Takes one variable away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.remove(OsStr::new(name));
        self
    }

    /// Whether sources may declare a variable of this name, with a value of their own or to have the caller's. `LD_PRELOAD` and its like may be declared: they reach the
    /// command alone, never the supervisor, and a command can set them itself.
    ///
    /// # Errors
    /// Why not.
    pub fn may_declare(name: &str, own_value: bool) -> Result<(), &'static str> {
        let upper = name.to_ascii_uppercase();
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err("is no name of a variable");
        }
        if upper.starts_with("OCX_") || upper.starts_with("FOSSIL_") {
            return Err("is one of OCX's or Fossil's own");
        }
        if !own_value && SECRET.iter().any(|word| upper.contains(word)) {
            return Err("looks like a secret of the caller's");
        }
        Ok(())
    }

    /// The names of those `variables` that do not get through, sorted. Those that have a fixed value instead, or that
    /// each shell sets for itself, are not among them.
    pub fn held_back(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
        let replaced = |name: &str| {
            ["LANGUAGE", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name)
                || name.starts_with("LC_")
                || FIXED.iter().any(|(fixed, _)| *fixed == name)
        };
        let held = variables.into_iter().filter(|(name, value)| !allowed(name, value));
        let mut names: Vec<_> = held.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.retain(|name| !replaced(name));
        names.sort();
        names
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
    let listed = name.to_str().is_some_and(|name| ALLOWED.contains(&name));
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
            ("PWD", "/s"),
            ("SSH_AUTH_SOCK", "/s"),
            ("HTTPS_PROXY", "http://me:secret@proxy:1"),
            ("HTTP_PROXY", "http://proxy:1"),
            ("LC_ALL", "C.UTF-8"),
            ("PATH", "/bin"),
            ("TERM", "xterm"),
        ];
        let fixed = ["CI=1", "HTTP_PROXY=http://proxy:1", "LANG=C.UTF-8", "PATH=/bin", "TERM=dumb"];
        assert_eq!(seen(&given), fixed);
        let given = given.map(|(name, value)| (name.into(), value.into()));
        let held = [
            "AWS_SECRET_ACCESS_KEY",
            "CARGO_REGISTRY_TOKEN",
            "FOSSIL_PASSWORD",
            "HTTPS_PROXY",
            "SSH_AUTH_SOCK",
        ];
        assert_eq!(Environment::held_back(given), held);
    }

    #[test]
    fn a_path_is_always_there() {
        assert_eq!(seen(&[]), ["CI=1", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin", "TERM=dumb"]);
    }

    #[test]
    fn the_callers_secrets_cannot_be_declared() {
        for name in ["OCX_HOME", "FOSSIL_USER", "", "A=B"] {
            assert!(
                Environment::may_declare(name, false).is_err()
                    && Environment::may_declare(name, true).is_err()
            );
        }
        for name in ["npm_token", "MY_API_KEY", "SSH_AUTH_SOCK"] {
            assert!(Environment::may_declare(name, false).is_err(), "{name}");
            assert!(
                Environment::may_declare(name, true).is_ok(),
                "a value in the sources is no secret: {name}"
            );
        }
        assert!(Environment::may_declare("LD_PRELOAD", false).is_ok());
    }
}
