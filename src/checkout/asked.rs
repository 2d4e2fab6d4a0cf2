//! What plain Fossil would ask before a check-in: whether a file that looks like no plain text is meant. OCX asks nothing
//! and changes nothing, and says the same.

use super::open::Checkout;
use super::status::{How, Status};
use crate::error::{Error, Result};
use crate::name::TreePath;
use crate::repo::setting::Settings;
use crate::text::{Ends, Look, LookKind};
use crate::tree::FileKind;
use crate::tree::ignore::Ignore;

/// Fossil's own value for `large-file-size`, in bytes.
const LARGE: i64 = 20_000_000;

/// The settings that say of which files something unusual is meant.
struct Meant {
    crlf: Ignore,
    binary: Ignore,
    encoding: Ignore,
    size_max: Option<u64>,
}

impl Meant {
    fn of(settings: &Settings<'_>) -> Result<Self> {
        let list = |name| Ok::<_, Error>(Ignore::parse(&settings.value(name)?.unwrap_or_default()));
        let crlf = if settings.value("crlf-glob")?.is_some() { "crlf-glob" } else { "crnl-glob" };
        let size = settings.value("large-file-size")?.and_then(|size| size.trim().parse().ok());
        Ok(Self {
            crlf: list(crlf)?,
            binary: list("binary-glob")?,
            encoding: list("encoding-glob")?,
            size_max: u64::try_from(size.unwrap_or(LARGE)).ok().filter(|size| *size > 0),
        })
    }

    /// What is unusual of a file, and the setting that would say that it is meant.
    fn unusual(&self, path: &TreePath, content: &[u8]) -> Option<(String, &'static str)> {
        if let Some(max) = self.size_max.filter(|max| content.len() as u64 > *max) {
            return Some((format!("is more than {max} bytes in size"), "large-file-size"));
        }
        let is_meant = |list: &Ignore| list.matches(path.as_str());
        let Look { kind, ends } = Look::of(content);
        let ends = match ends {
            Ends::Lf => None,
            Ends::CrLf => Some("CR/LF line endings"),
            Ends::Cr => Some("CR line endings"),
            Ends::Mixed => Some("mixed line endings"),
        };
        let (what, setting, is_meant) = match (kind, ends) {
            (LookKind::Binary, _) => ("binary data", "binary-glob", is_meant(&self.binary)),
            (LookKind::LongLines, _) => ("long lines", "binary-glob", is_meant(&self.binary)),
            (LookKind::Utf16, Some(ends)) => {
                let both = is_meant(&self.crlf) && is_meant(&self.encoding);
                return (!both)
                    .then(|| (format!("contains {ends} and Unicode"), "crlf-glob` and `encoding-glob"));
            }
            (LookKind::OtherText, _) => ("invalid UTF-8", "encoding-glob", is_meant(&self.encoding)),
            (LookKind::Utf8, Some(ends)) => (ends, "crlf-glob", is_meant(&self.crlf)),
            (LookKind::Utf16, None) => ("Unicode", "encoding-glob", is_meant(&self.encoding)),
            (LookKind::Utf8, None) => return None,
        };
        (!is_meant).then(|| (format!("contains {what}"), setting))
    }
}

impl Checkout {
    /// What plain Fossil would ask of the files that a check-in of `status` brings, one line each: of binary data, line
    /// ends, encodings and sizes that no setting says are meant.
    ///
    /// # Errors
    /// Those of reading the files and the settings.
    pub fn would_be_asked(&self, status: &Status) -> Result<Vec<String>> {
        let meant = Meant::of(&self.settings())?;
        let mut lines = Vec::new();
        for change in status.changes.iter().filter(|change| !matches!(change.how, How::Deleted | How::Mode)) {
            let path = &change.path;
            let Some(file) = status.files.get(path).filter(|file| file.kind != FileKind::Symlink) else {
                continue;
            };
            if let Some((what, setting)) = meant.unusual(path, &self.stored_content(path, file)?) {
                lines.push(format!(
                    "`{}` {what}; plain Fossil would ask, unless `{setting}` says it is meant",
                    path.shown()
                ));
            }
        }
        Ok(lines)
    }
}
