//! Compiles what is stale, several files at a time, the biggest first.

use super::failure::{Failure, Result};
use super::flags;
use super::generate::{Generated, compiled_file, own_plain};
use super::isolate::Isolation;
use super::object::{Contents, Kind, Object};
use super::plan::Plan;
use parking_lot::Mutex;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Brings all objects up to date. Returns their paths.
pub fn compile(plan: &Plan, generated: &Generated) -> Result<Vec<PathBuf>> {
    let folder = plan.out.join("objects");
    fs::create_dir_all(&folder).map_err(|e| {
        Failure::new("compile", format!("cannot make {}: {e}", folder.display()), "Make room on the disk.")
    })?;
    let isolation = Isolation::find(plan)?;
    let mut objects = list(plan, generated, &folder);
    objects.sort_by_key(|object| std::cmp::Reverse(fs::metadata(&object.from).map_or(0, |meta| meta.len())));
    let contents = Contents::default();
    in_parallel(plan.jobs, &objects, |object| object.refresh(plan, &isolation, &contents))?;
    Ok(objects.into_iter().map(|object| object.to).collect())
}

fn list(plan: &Plan, generated: &Generated, folder: &std::path::Path) -> Vec<Object> {
    let fossil = generated.files.iter().map(|name| Object {
        from: compiled_file(plan, generated, name),
        to: folder.join(format!("{name}.o")),
        flags: flags::fossil(plan, generated, name),
        kind: Kind::Fossil,
    });
    let ours = own_plain(plan).into_iter().map(|from| Object {
        to: folder.join(format!("ocx-{}.o", from.file_stem().unwrap_or_default().to_string_lossy())),
        from,
        flags: flags::ours(plan, generated),
        kind: Kind::Ours,
    });
    fossil.chain(ours).collect()
}

/// Does `work` on each item, on `threads` threads; stops at the first failure.
fn in_parallel<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(e) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed.lock().get_or_insert(e);
                    }
                }
            });
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}
