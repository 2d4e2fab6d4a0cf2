//! Which file uses which: every path of a file, followed through `use` and re-exports to the file that defines the name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, UseTree};

/// A module's path below the crate, such as `["repo", "store"]`.
type Module = Vec<String>;

/// For each file, the files that it imports from.
pub type Imports = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Reads the imports of all files; `sources` are paths below `src` with their texts. Tests are left out.
pub fn imports(sources: &[(PathBuf, String)]) -> Imports {
    let house = House::read(sources);
    house.files.iter().map(|(module, file)| (file.path.clone(), house.imports_of(module, file))).collect()
}

/// Groups of files that reach each other over imports.
pub fn circles(imports: &Imports) -> Vec<BTreeSet<PathBuf>> {
    let reach = |from: &Path| {
        let mut seen = BTreeSet::new();
        let mut ahead: Vec<&Path> = vec![from];
        while let Some(next) = ahead.pop() {
            for file in imports.get(next).into_iter().flatten() {
                if seen.insert(file.clone()) {
                    ahead.push(file);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> = imports.keys().map(|f| (f, reach(f))).collect();
    let mut circles: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (file, beyond) in reached.iter().filter(|(file, beyond)| beyond.contains(**file)) {
        if circles.iter().all(|circle| !circle.contains(*file)) {
            circles.push(beyond.iter().filter(|other| reached[other].contains(*file)).cloned().collect());
        }
    }
    circles
}

/// The crate's modules.
struct House {
    files: BTreeMap<Module, Room>,
}

/// One file.
struct Room {
    path: PathBuf,
    /// Names that it defines.
    defined: BTreeSet<String>,
    /// Names that `use` brings in, with the paths they stand for.
    bound: BTreeMap<String, Vec<String>>,
    /// Modules that `use` takes everything from.
    globs: Vec<Vec<String>>,
    /// Private `use`: what it names is used, were it only a trait.
    used: Vec<Vec<String>>,
    /// Every other path.
    paths: BTreeSet<Vec<String>>,
}

impl House {
    fn read(sources: &[(PathBuf, String)]) -> Self {
        let mut files = BTreeMap::new();
        for (path, text) in sources {
            let module = module_of(path);
            let parsed = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            files.insert(module.clone(), Room::read(path, &module, &parsed));
        }
        Self { files }
    }

    fn imports_of(&self, module: &Module, room: &Room) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        for path in &room.used {
            found.extend(self.defining(path, 0));
        }
        for path in &room.paths {
            let whole = match path[0].as_str() {
                "crate" | "self" | "super" => absolute(module, path),
                first => match room.bound.get(first) {
                    Some(target) => target.iter().chain(&path[1..]).cloned().collect(),
                    None => module.iter().chain(path).cloned().collect(),
                },
            };
            found.extend(self.defining(&whole, 0));
        }
        found.remove(&room.path);
        found
    }

    /// The file that defines what an absolute path names; nothing for a module or for what is not of this crate.
    fn defining(&self, path: &[String], depth: usize) -> Option<PathBuf> {
        if depth > 20 {
            return None;
        }
        let len = (0..=path.len()).rev().find(|len| self.files.contains_key(&path[..*len]))?;
        let (room, name) = (&self.files[&path[..len]], path.get(len)?);
        if room.defined.contains(name) {
            return Some(room.path.clone());
        }
        let beyond =
            |target: &Vec<String>| target.iter().chain(&path[len + 1..]).cloned().collect::<Vec<_>>();
        if let Some(target) = room.bound.get(name) {
            return self.defining(&beyond(target), depth + 1);
        }
        room.globs.iter().find_map(|glob| {
            let whole: Vec<_> = glob.iter().chain(&path[len..]).cloned().collect();
            self.defining(&whole, depth + 1)
        })
    }
}

impl Room {
    fn read(path: &Path, module: &Module, file: &File) -> Self {
        let mut room = Self {
            path: path.to_owned(),
            defined: BTreeSet::new(),
            bound: BTreeMap::new(),
            globs: Vec::new(),
            used: Vec::new(),
            paths: BTreeSet::new(),
        };
        room.take(module, &file.items);
        let mut paths = Paths(BTreeSet::new());
        paths.visit_file(file);
        room.paths = paths.0;
        room
    }

    fn take(&mut self, module: &Module, items: &[Item]) {
        for item in items {
            match item {
                Item::Use(item) if !is_test(&item.attrs) => {
                    let private = matches!(item.vis, syn::Visibility::Inherited);
                    self.bind(module, &mut Vec::new(), &item.tree, private);
                }
                Item::Struct(item) => self.define(&item.ident),
                Item::Enum(item) => self.define(&item.ident),
                Item::Union(item) => self.define(&item.ident),
                Item::Trait(item) => self.define(&item.ident),
                Item::Type(item) => self.define(&item.ident),
                Item::Fn(item) => self.define(&item.sig.ident),
                Item::Const(item) => self.define(&item.ident),
                Item::Static(item) => self.define(&item.ident),
                Item::Macro(item) => item.ident.iter().for_each(|ident| self.define(ident)),
                _ => {}
            }
        }
    }

    fn define(&mut self, ident: &syn::Ident) {
        self.defined.insert(ident.to_string());
    }

    fn bind(&mut self, module: &Module, prefix: &mut Vec<String>, tree: &UseTree, private: bool) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.bind(module, prefix, &path.tree, private);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.bind(module, prefix, tree, private);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                let last = prefix.last().cloned().unwrap_or_default();
                self.name(module, last, prefix, private);
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let path: Vec<_> = prefix.iter().chain([&name]).cloned().collect();
                self.name(module, name, &path, private);
            }
            UseTree::Rename(rename) => {
                let path: Vec<_> = prefix.iter().cloned().chain([rename.ident.to_string()]).collect();
                self.name(module, rename.rename.to_string(), &path, private);
            }
            UseTree::Glob(_) => self.globs.push(absolute(module, prefix)),
        }
    }

    fn name(&mut self, module: &Module, name: String, path: &[String], private: bool) {
        let path = absolute(module, path);
        if private {
            self.used.push(path.clone());
        }
        self.bound.insert(name, path);
    }
}

/// Collects the paths of a file, but for its tests and its `use` lines.
struct Paths(BTreeSet<Vec<String>>);

impl<'a> Visit<'a> for Paths {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(_) => return,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// A path from the crate's root, without `crate`.
fn absolute(module: &Module, path: &[String]) -> Vec<String> {
    let mut base = match path.first().map(String::as_str) {
        Some("crate") => return path[1..].to_vec(),
        Some("self" | "super") => module.clone(),
        _ => return module.iter().chain(path).cloned().collect(),
    };
    let mut rest = path;
    while let Some((first, after)) =
        rest.split_first().filter(|(first, _)| ["self", "super"].contains(&first.as_str()))
    {
        if first == "super" {
            base.pop();
        }
        rest = after;
    }
    base.extend_from_slice(rest);
    base
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = path
        .with_extension("")
        .components()
        .skip(1)
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

#[test]
fn a_circle_is_found_through_re_exports_and_modules() {
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let sources = [
        file("src/lib.rs", "pub mod a; pub mod b;"),
        file("src/a/mod.rs", "mod inner; pub use inner::Thing;"),
        file("src/a/inner.rs", "use crate::b; pub struct Thing; fn f() { b::act() }"),
        file("src/b.rs", "use crate::a::Thing; pub fn act() -> Thing { Thing }"),
        file("src/c.rs", "use crate::b::act; #[cfg(test)] mod tests { use crate::d::Late; }"),
        file("src/d.rs", "use crate::c::x; pub struct Late;"),
    ];
    let circles = circles(&imports(&sources));
    assert_eq!(circles, [BTreeSet::from(["src/a/inner.rs".into(), "src/b.rs".into()])]);
}
