//! What a test finds on the disk.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Every file below a folder but Fossil's databases: its text, behind `x ` for a program, or `-> ` and where a link leads.
pub fn files_below(root: &Path) -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let meta = path.symlink_metadata().unwrap();
            if name.starts_with(".fslckout") {
                continue;
            }
            if meta.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if meta.is_dir() {
                folders.push(path);
            } else {
                let mode = if meta.permissions().mode() & 0o100 == 0 { "" } else { "x " };
                found.insert(name, format!("{mode}{}", String::from_utf8_lossy(&fs::read(&path).unwrap())));
            }
        }
    }
    found
}
