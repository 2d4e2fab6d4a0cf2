//! The marks that Fossil's merge leaves in a file where two changes meet, and that a person or an agent must edit away.

use super::open::Checkout;
use super::status::{How, Status};
use crate::error::{Kind, Result};
use crate::format::FILE_MAX;
use crate::name::{Hash, TreePath};
use crate::repo::store::Files;

/// How the lines begin that Fossil writes around the two sides of a conflict.
const MARKS: [&[u8]; 5] = [
    b"<<<<<<< BEGIN MERGE CONFLICT: local copy shown first <<<<<<<<<<<<",
    b"####### SUGGESTED CONFLICT RESOLUTION follows ###################",
    b"||||||| COMMON ANCESTOR content follows |||||||||||||||||||||||||",
    b"======= MERGED IN content follows ===============================",
    b">>>>>>> END MERGE CONFLICT >>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>",
];

/// A file with conflict marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicted {
    /// The file.
    pub path: TreePath,
    /// The lines of the marks, from 1. None if the file is the other side's, put beside one that could not be joined.
    pub lines: Vec<usize>,
}

impl Checkout {
    /// What is still open of a merge or an update: changed files with conflict marks, and the other side's files that stand
    /// beside those that they could not be joined with. Does not count marks that the file has
    /// as many of in a check-in it comes from, and, unless a merge is unfinished, any in new files: such text is meant.
    ///
    /// # Errors
    /// Those of reading the files and the repository.
    pub fn conflicted(&self, status: &Status) -> Result<Vec<Conflicted>> {
        let merged: Vec<Hash> = self.merged()?.into_iter().map(|(hash, _)| hash).collect();
        let mut found = Vec::new();
        for change in &status.changes {
            let may_be_marked = match change.how {
                How::Edited | How::Kind => true,
                How::Added => !merged.is_empty() || status.renamed.contains_key(&change.path),
                How::Deleted | How::Mode => false,
            };
            if !may_be_marked {
                continue;
            }
            let content = match self.tree().read(&change.path, FILE_MAX) {
                Ok(content) => content,
                // It has gone, or is a link.
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Denied) => continue,
                Err(e) => return Err(e),
            };
            let marks = marks(&content);
            if !marks.is_empty() && !self.are_meant(&change.path, &marks, status, &merged)? {
                let lines = marks.into_iter().map(|(line, _)| line).collect();
                found.push(Conflicted { path: change.path.clone(), lines });
            }
        }
        let theirs = self.beside()?.into_iter().filter(|beside| beside.theirs);
        found.extend(theirs.map(|beside| Conflicted { path: beside.path, lines: Vec::new() }));
        Ok(found)
    }

    /// Whether one of the check-ins that the files come from has as many of these marks in this file.
    fn are_meant(
        &self,
        path: &TreePath,
        now: &[(usize, usize)],
        status: &Status,
        merged: &[Hash],
    ) -> Result<bool> {
        let store = self.repository().store();
        for check_in in std::iter::once(&status.parent).chain(merged) {
            let files: &Files = &*store.files(check_in)?;
            let old = status.renamed.get(path).filter(|_| *check_in == status.parent).unwrap_or(path);
            let Some(file) = files.get(old) else { continue };
            let before = marks(&store.content(&file.hash)?);
            let count = |marks: &[(usize, usize)], kind| marks.iter().filter(|(_, k)| *k == kind).count();
            if (0..MARKS.len()).all(|kind| count(now, kind) <= count(&before, kind)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The marks in a text: the line of each, and which it is. A binary file has none.
fn marks(content: &[u8]) -> Vec<(usize, usize)> {
    if memchr::memchr(0, content).is_some() {
        return Vec::new();
    }
    let lines = content.split(|&b| b == b'\n').enumerate();
    lines
        .filter_map(|(at, line)| Some((at + 1, MARKS.iter().position(|mark| line.starts_with(mark))?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g09_marks_are_whole_line_beginnings_of_a_text() {
        let text = |mark: usize| [b"a\r\n".as_slice(), MARKS[mark], b" (line 3)\r\nb"].concat();
        for mark in 0..MARKS.len() {
            assert_eq!(marks(&text(mark)), [(2, mark)]);
            assert_eq!(marks(&[text(mark), vec![0]].concat()), []);
        }
        assert_eq!(marks(MARKS[4]), [(1, 4)]);
        for other in
            ["", "<<<<<<< HEAD\n", "=======\n", " >>>>>>> END MERGE CONFLICT >>>>>>>>>>>>>>>>>>>>>>>\n"]
        {
            assert_eq!(marks(other.as_bytes()), [], "{other}");
        }
    }
}
