//! SQLite's file layer with something between: it hands every operation on to the real one, can make the
//! Nth fail, and knows what of it a power loss would leave.
//!
//! It stands before the default of the whole process, so it sees Fossil's connections and the library's alike.
#![allow(unsafe_code, reason = "a file layer of SQLite is written in C's terms")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libsqlite3_sys as sqlite;
use sqlite::{sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::disk::{Disk, Image, Loss};

/// What SQLite asks of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    Remove,
}

/// How operations fail.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    pub op: Op,
    /// SQLite's result code.
    pub code: c_int,
    /// Which of the operations of that kind fails, from 0.
    pub nth: usize,
    /// Whether all after it fail too.
    pub lasting: bool,
}

#[derive(Default)]
struct State {
    folder: PathBuf,
    disk: Disk,
    fault: Option<Fault>,
    seen: usize,
    failed: usize,
    /// Pictures of the disk, one before each change of it, while they are taken.
    pictures: Option<Vec<Image>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static REGISTERED: Once = Once::new();

/// The watch over the databases of one folder, from before they are made.
pub struct Watch {
    state: &'static Mutex<Option<State>>,
    _one: MutexGuard<'static, ()>,
}

impl Watch {
    pub fn over(folder: &Path) -> Self {
        REGISTERED.call_once(register);
        let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        *state() = Some(State { folder: folder.canonicalize().unwrap(), ..State::default() });
        Self { state: &STATE, _one: one }
    }

    /// Runs `f` with a fault; gives its result and how many operations failed.
    pub fn with<R>(&self, fault: Fault, f: impl FnOnce() -> R) -> (R, usize) {
        self.set(|s| (s.fault, s.seen, s.failed) = (Some(fault), 0, 0));
        let result = f();
        (
            result,
            self.set(|s| {
                s.fault = None;
                s.failed
            }),
        )
    }

    /// Runs `f` and gives pictures of the disk, as a power loss before each single change would leave it.
    pub fn pictures<R>(&self, f: impl FnOnce() -> R) -> (R, Vec<Image>) {
        self.set(|s| s.pictures = Some(Vec::new()));
        let result = f();
        (result, self.set(|s| s.pictures.take().unwrap()))
    }

    /// The disk after a power loss now.
    pub fn picture(&self, loss: Loss) -> Image {
        self.set(|s| s.disk.after(loss))
    }

    fn set<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(self.state.lock().unwrap_or_else(PoisonError::into_inner).as_mut().unwrap())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *state() = None;
    }
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes an operation on `path` into account: an error code when it must fail, else what `note` says of it.
fn operation(path: &Path, op: Op, note: impl FnOnce(&mut Disk, &Path)) -> c_int {
    let mut state = state();
    let Some(state) = state.as_mut() else { return sqlite::SQLITE_OK };
    let Ok(within) = path.strip_prefix(&state.folder) else { return sqlite::SQLITE_OK };
    if let Some(fault) = state.fault.filter(|fault| fault.op == op) {
        let number = state.seen;
        state.seen += 1;
        if number == fault.nth || (fault.lasting && number > fault.nth) {
            state.failed += 1;
            return fault.code;
        }
    }
    let changes = matches!(op, Op::Write | Op::Sync | Op::Truncate | Op::Remove);
    if let Some(pictures) = state.pictures.as_mut().filter(|_| changes) {
        let seed = (pictures.len() as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let loss = [Loss::All, Loss::Some(seed), Loss::None][pictures.len() % 3];
        pictures.push(state.disk.after(loss));
    }
    note(&mut state.disk, within);
    sqlite::SQLITE_OK
}

/// An open file; the real one's lies behind it.
#[repr(C)]
struct File {
    base: sqlite3_file,
    path: *mut PathBuf,
}

fn real(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: `szOsFile` says that the real file follows ours.
    unsafe { file.cast::<u8>().add(mem::size_of::<File>()).cast() }
}

fn path_of<'a>(file: *mut sqlite3_file) -> &'a Path {
    // SAFETY: set by `open`, freed by `close`.
    unsafe { &*(*file.cast::<File>()).path }
}

/// The real file layer, kept as our own's application data.
fn real_vfs(vfs: *mut sqlite3_vfs) -> *mut sqlite3_vfs {
    // SAFETY: set by `register`.
    unsafe { (*vfs).pAppData.cast() }
}

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(#[allow(non_snake_case, reason = "SQLite's names")]
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $type)*) -> $result {
            let real = real(file);
            // SAFETY: SQLite calls this with a file that `open` has made.
            unsafe { (*(*real).pMethods).$name.unwrap()(real $(, $argument)*) }
        })*
    };
}

forward! {
    xFileSize(size: *mut sqlite3_int64) -> c_int;
    xLock(level: c_int) -> c_int;
    xUnlock(level: c_int) -> c_int;
    xCheckReservedLock(is: *mut c_int) -> c_int;
    xFileControl(op: c_int, argument: *mut c_void) -> c_int;
    xSectorSize() -> c_int;
    xDeviceCharacteristics() -> c_int;
    xShmMap(page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int;
    xShmLock(offset: c_int, n: c_int, flags: c_int) -> c_int;
    xShmBarrier() -> ();
    xShmUnmap(remove: c_int) -> c_int;
    xFetch(offset: sqlite3_int64, size: c_int, at: *mut *mut c_void) -> c_int;
    xUnfetch(offset: sqlite3_int64, at: *mut c_void) -> c_int;
}

/// Does what `forward` does once the operation is allowed.
macro_rules! allowed {
    ($file:ident, $op:expr, $note:expr, $name:ident($($argument:expr),*)) => {{
        let code = operation(path_of($file), $op, $note);
        if code != sqlite::SQLITE_OK {
            return code;
        }
        let real = real($file);
        // SAFETY: as in `forward`.
        unsafe { (*(*real).pMethods).$name.unwrap()(real $(, $argument)*) }
    }};
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let real = real(file);
    // SAFETY: SQLite closes a file once; the path was boxed by `open`.
    unsafe {
        let code = (*(*real).pMethods).xClose.unwrap()(real);
        drop(Box::from_raw((*file.cast::<File>()).path));
        code
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    size: c_int,
    at: sqlite3_int64,
) -> c_int {
    allowed!(file, Op::Read, |_, _| (), xRead(into, size, at))
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    size: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives `size` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), usize::try_from(size).unwrap()) };
    let offset = usize::try_from(at).unwrap();
    allowed!(file, Op::Write, |disk, path| disk.write(path, offset, bytes), xWrite(from, size, at))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    let to = usize::try_from(size).unwrap();
    allowed!(file, Op::Truncate, |disk, path| disk.truncate(path, to), xTruncate(size))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    allowed!(file, Op::Sync, Disk::sync, xSync(flags))
}

unsafe extern "C" fn remove(vfs: *mut sqlite3_vfs, name: *const c_char, durably: c_int) -> c_int {
    let code = operation(&path_from(name), Op::Remove, |disk, path| disk.remove(path, durably != 0));
    if code != sqlite::SQLITE_OK {
        return code;
    }
    let real = real_vfs(vfs);
    // SAFETY: SQLite's own arguments go to its own layer.
    unsafe { (*real).xDelete.unwrap()(real, name, durably) }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let path = path_from(name);
    let is_new = !path.exists();
    let note = |disk: &mut Disk, path: &Path| {
        if is_new {
            disk.create(path);
        }
    };
    let code = operation(&path, Op::Open, note);
    // SAFETY: SQLite gives `szOsFile` bytes, ours and the real file's; without methods it does not close the file.
    unsafe {
        (*file).pMethods = ptr::null();
        if code != sqlite::SQLITE_OK {
            return code;
        }
        let (layer, inner) = (real_vfs(vfs), real(file));
        let code = (*layer).xOpen.unwrap()(layer, name, inner, flags, out_flags);
        if !(*inner).pMethods.is_null() {
            if !is_new {
                found(&path, inner);
            }
            (*file).pMethods = &raw const METHODS;
            (*file.cast::<File>()).path = Box::into_raw(Box::new(path));
        }
        code
    }
}

/// Takes in a file that was written before the watch began.
///
/// # Safety
/// `file` is an open file of the real layer.
unsafe fn found(path: &Path, file: *mut sqlite3_file) {
    let mut state = state();
    let Some(state) = state.as_mut() else { return };
    let Ok(within) = path.strip_prefix(&state.folder) else { return };
    state.disk.found(within, || {
        let mut size = 0;
        // SAFETY: by this function's contract; any other descriptor of the file would cost SQLite its locks.
        unsafe {
            let methods = &*(*file).pMethods;
            assert_eq!(methods.xFileSize.unwrap()(file, &raw mut size), sqlite::SQLITE_OK);
            let mut content = vec![0u8; usize::try_from(size).unwrap()];
            let n = c_int::try_from(size).unwrap();
            assert_eq!(methods.xRead.unwrap()(file, content.as_mut_ptr().cast(), n, 0), sqlite::SQLITE_OK);
            content
        }
    });
}

/// SQLite's name of a file; temporary files have none.
fn path_from(name: *const c_char) -> PathBuf {
    if name.is_null() {
        return PathBuf::new();
    }
    // SAFETY: SQLite's names end with a NUL.
    PathBuf::from(unsafe { CStr::from_ptr(name) }.to_str().unwrap())
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(xFileSize),
    xLock: Some(xLock),
    xUnlock: Some(xUnlock),
    xCheckReservedLock: Some(xCheckReservedLock),
    xFileControl: Some(xFileControl),
    xSectorSize: Some(xSectorSize),
    xDeviceCharacteristics: Some(xDeviceCharacteristics),
    xShmMap: Some(xShmMap),
    xShmLock: Some(xShmLock),
    xShmBarrier: Some(xShmBarrier),
    xShmUnmap: Some(xShmUnmap),
    xFetch: Some(xFetch),
    xUnfetch: Some(xUnfetch),
};

fn register() {
    // SAFETY: the real layer lives as long as the process, as ours does, which is leaked.
    unsafe {
        let real = sqlite::sqlite3_vfs_find(ptr::null());
        let mut ours = *real;
        ours.szOsFile += c_int::try_from(mem::size_of::<File>()).unwrap();
        ours.zName = c"watched".as_ptr();
        ours.pAppData = real.cast();
        ours.xOpen = Some(open);
        ours.xDelete = Some(remove);
        let ours = Box::leak(Box::new(ours));
        assert_eq!(sqlite::sqlite3_vfs_register(ours, 1), sqlite::SQLITE_OK);
    }
}
