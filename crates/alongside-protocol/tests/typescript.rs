//! The page's TypeScript types are generated from this crate and the core types it contains.
//!
//! The sources are read with `syn`: the types then need no second derive, and the core no feature.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use alongside_protocol::{NOTIFICATION_TYPES, REQUEST_TYPES};
use syn::{Attribute, Fields, GenericArgument, Item, PathArguments, Type};

const OUTPUT: &str = "web/src/generated/protocol.ts";
const COMMAND: &str = "UPDATE_TYPES=1 cargo test -p alongside-protocol --test typescript";
const SOURCES: &[&str] = &[
    "alongside-core/src/context/ide_context.rs",
    "alongside-core/src/diagnostics.rs",
    "alongside-core/src/difference.rs",
    "alongside-core/src/draft/change.rs",
    "alongside-core/src/draft/hunk.rs",
    "alongside-core/src/hook.rs",
    "alongside-core/src/privacy.rs",
    "alongside-core/src/review.rs",
    "alongside-core/src/session.rs",
    "alongside-core/src/text_change.rs",
    "alongside-protocol/src/chat/command.rs",
    "alongside-protocol/src/chat/event.rs",
    "alongside-protocol/src/chat/mod.rs",
    "alongside-protocol/src/chat/permission.rs",
    "alongside-protocol/src/chat/session.rs",
    "alongside-protocol/src/chat/tool.rs",
    "alongside-protocol/src/companion.rs",
    "alongside-protocol/src/context.rs",
    "alongside-protocol/src/hook.rs",
    "alongside-protocol/src/review.rs",
];
/// Types whose JSON is not what a derive would write.
const SPECIAL: &[(&str, &str)] = &[
    ("Answers", "Readonly<Record<string, string>>"),
    (
        "ContentBlock",
        "\n  | { readonly type: \"text\"; readonly text: string }\
         \n  | { readonly type: \"image\"; readonly data?: string; readonly mimeType: string }\
         \n  | { readonly type: \"resource_link\"; readonly name: string; readonly uri: string }\
         \n  | { readonly type: \"file\"; readonly name: string; readonly mimeType: string; readonly data: string }\
         \n  | { readonly type: \"image\" | \"resource\"; readonly attachmentId: string; readonly mimeType: string; readonly size: number }\
         \n  | { readonly type: \"resource\"; readonly resource: { readonly uri: string; readonly mimeType?: string } }\
         \n  | { readonly type: string }",
    ),
    ("Empty", "Readonly<Record<never, never>>"),
    ("OptionKind", "string"),
    ("SessionKey", "string"),
    ("ToolStatus", "string"),
];

#[test]
fn generated_types_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generated = Generator::read(&root.join("crates")).generate();
    let path = root.join(OUTPUT);
    if std::env::var_os("UPDATE_TYPES").is_some() {
        return std::fs::write(&path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed.replace("\r\n", "\n") == generated,
        "{OUTPUT} is stale; run `{COMMAND}`"
    );
}

struct Generator {
    items: BTreeMap<String, Item>,
    /// Types that only front ends send: fields with a default may be omitted.
    only_sent: BTreeSet<String>,
}

/// The serde attributes of a type, a variant or a field.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "one per attribute")]
struct Serde {
    rename: Option<String>,
    camel_case: bool,
    camel_case_fields: bool,
    tag: Option<String>,
    transparent: bool,
    flatten: bool,
    default: bool,
    skipped_if_none: bool,
    skip: bool,
}

impl Serde {
    fn read(attributes: &[Attribute]) -> Self {
        let mut serde = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            let read = attribute.parse_nested_meta(|meta| {
                let value = || meta.value()?.parse::<syn::LitStr>().map(|text| text.value());
                match meta.path.get_ident().unwrap().to_string().as_str() {
                    "rename" => serde.rename = Some(value()?),
                    "rename_all" => serde.camel_case = value()? == "camelCase",
                    "rename_all_fields" => serde.camel_case_fields = value()? == "camelCase",
                    "tag" => serde.tag = Some(value()?),
                    "skip_serializing_if" => serde.skipped_if_none = value()? == "Option::is_none",
                    "alias" => drop(value()?),
                    // The JSON is that of a string.
                    "deserialize_with" => assert!(value()?.starts_with("long_text::")),
                    "transparent" => serde.transparent = true,
                    "flatten" => serde.flatten = true,
                    "default" => serde.default = true,
                    "skip" => serde.skip = true,
                    other => panic!("the generator does not know serde's `{other}`"),
                }
                Ok(())
            });
            read.unwrap();
        }
        serde
    }
}

impl Generator {
    fn read(crates: &Path) -> Self {
        let mut items = BTreeMap::new();
        for source in SOURCES {
            let text = std::fs::read_to_string(crates.join(source)).unwrap();
            for item in syn::parse_file(&text).unwrap().items {
                let name = match &item {
                    Item::Struct(item) => item.ident.to_string(),
                    Item::Enum(item) => item.ident.to_string(),
                    _ => continue,
                };
                items.insert(name, item);
            }
        }
        let only_sent = BTreeSet::new();
        let mut generator = Self { items, only_sent };
        let sent = REQUEST_TYPES.iter().map(|(_, params, _)| *params);
        let responses = REQUEST_TYPES.iter().map(|(_, _, response)| *response);
        let received = responses.chain(NOTIFICATION_TYPES.iter().map(|(_, params)| *params));
        generator.only_sent = &generator.reachable(sent) - &generator.reachable(received);
        generator
    }

    /// The names of these types and of all types in them.
    fn reachable<'a>(&self, roots: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut queue: Vec<String> = roots.flat_map(|root| names(&syn::parse_str(root).unwrap())).collect();
        while let Some(name) = queue.pop() {
            let is_new = found.insert(name.clone());
            if !is_new || special(&name).is_some() {
                continue;
            }
            match self.items.get(&name) {
                Some(Item::Struct(item)) => queue.extend(item.fields.iter().flat_map(|field| names(&field.ty))),
                Some(Item::Enum(item)) => {
                    let fields = item.variants.iter().flat_map(|variant| &variant.fields);
                    queue.extend(fields.flat_map(|field| names(&field.ty)));
                }
                _ => {}
            }
        }
        found.retain(|name| self.items.contains_key(name) || special(name).is_some());
        found
    }

    fn generate(&self) -> String {
        let mut text = format!("// Generated from alongside-protocol. Do not edit; run `{COMMAND}`.\n");
        let roots = REQUEST_TYPES
            .iter()
            .flat_map(|(_, params, response)| [*params, *response]);
        for name in self.reachable(roots.chain(NOTIFICATION_TYPES.iter().map(|(_, params)| *params))) {
            match (special(&name), self.items.get(&name)) {
                (Some(special), _) => {
                    let space = if special.starts_with('\n') { "" } else { " " };
                    write!(text, "\nexport type {name} ={space}{special};\n").unwrap();
                }
                (None, Some(Item::Struct(item))) => text.push_str(&self.structure(&name, item)),
                (None, Some(Item::Enum(item))) => text.push_str(&self.enumeration(&name, item)),
                _ => panic!("{name} is not a type"),
            }
        }
        text.push_str("\n/** Parameters and response of each request, by method. */\nexport interface Requests {\n");
        for (method, params, response) in REQUEST_TYPES {
            let (key, params, response) = (key(method), parsed(params), parsed(response));
            writeln!(
                text,
                "  {key}: {{ readonly params: {params}; readonly response: {response} }};"
            )
            .unwrap();
        }
        text.push_str("}\n\n/** Parameters of each notification, by method. */\nexport interface Notifications {\n");
        for (method, params) in NOTIFICATION_TYPES {
            writeln!(text, "  {}: {};", key(method), parsed(params)).unwrap();
        }
        text.push_str("}\n");
        text
    }

    fn structure(&self, name: &str, item: &syn::ItemStruct) -> String {
        let serde = Serde::read(&item.attrs);
        if let Fields::Unnamed(fields) = &item.fields {
            assert!(serde.transparent, "{name} is a tuple");
            return format!("\nexport type {name} = {};\n", typescript(&fields.unnamed[0].ty));
        }
        let mut bases = Vec::new();
        let mut lines = String::new();
        for field in item.fields.iter().filter(|field| !Serde::read(&field.attrs).skip) {
            if Serde::read(&field.attrs).flatten {
                bases.push(typescript(&field.ty));
            } else {
                writeln!(lines, "  {};", self.field(name, field, serde.camel_case)).unwrap();
            }
        }
        let extends = if bases.is_empty() {
            String::new()
        } else {
            format!(" extends {}", bases.join(", "))
        };
        format!("\nexport interface {name}{extends} {{\n{lines}}}\n")
    }

    fn enumeration(&self, name: &str, item: &syn::ItemEnum) -> String {
        let serde = Serde::read(&item.attrs);
        let mut variants = Vec::new();
        for variant in &item.variants {
            let plain = variant.ident.to_string();
            let wire = Serde::read(&variant.attrs).rename.unwrap_or(if serde.camel_case {
                plain[..1].to_lowercase() + &plain[1..]
            } else {
                plain
            });
            variants.push(match (&serde.tag, &variant.fields) {
                (None, Fields::Unit) => format!("\"{wire}\""),
                (Some(tag), Fields::Unit) => format!("{{ readonly {tag}: \"{wire}\" }}"),
                (Some(tag), Fields::Unnamed(fields)) => {
                    let inner = typescript(&fields.unnamed[0].ty);
                    format!("({{ readonly {tag}: \"{wire}\" }} & {inner})")
                }
                (Some(tag), Fields::Named(fields)) => {
                    let fields = fields.named.iter();
                    let fields: Vec<String> = fields
                        .map(|field| self.field(name, field, serde.camel_case_fields))
                        .collect();
                    format!("{{ readonly {tag}: \"{wire}\"; {} }}", fields.join("; "))
                }
                _ => panic!("{name}::{} has no tag", variant.ident),
            });
        }
        if serde.tag.is_none() {
            return format!("\nexport type {name} = {};\n", variants.join(" | "));
        }
        format!("\nexport type {name} =\n  | {};\n", variants.join("\n  | "))
    }

    fn field(&self, owner: &str, field: &syn::Field, camel: bool) -> String {
        let serde = Serde::read(&field.attrs);
        let plain = field.ident.as_ref().unwrap().to_string();
        let name = serde.rename.unwrap_or(if camel { camel_case(&plain) } else { plain });
        let optional = serde.skipped_if_none || (serde.default && self.only_sent.contains(owner));
        let (outer, arguments) = segment(&field.ty);
        let ty = match outer.as_str() {
            "Option" if optional => typescript(arguments[0]),
            _ => typescript(&field.ty),
        };
        format!("readonly {name}{}: {ty}", if optional { "?" } else { "" })
    }
}

fn special(name: &str) -> Option<&'static str> {
    let found = SPECIAL.iter().find(|(special, _)| *special == name);
    found.map(|(_, typescript)| *typescript)
}

fn key(method: &str) -> String {
    if method.contains('/') {
        format!("\"{method}\"")
    } else {
        method.to_owned()
    }
}

fn parsed(ty: &str) -> String {
    typescript(&syn::parse_str(ty).unwrap())
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

/// The last segment of a path and its type arguments.
fn segment(ty: &Type) -> (String, Vec<&Type>) {
    let Type::Path(path) = ty else {
        panic!("the generator knows only paths");
    };
    let last = path.path.segments.last().unwrap();
    let mut types = Vec::new();
    if let PathArguments::AngleBracketed(arguments) = &last.arguments {
        types.extend(arguments.args.iter().filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        }));
    }
    (last.ident.to_string(), types)
}

/// The names in a type.
fn names(ty: &Type) -> Vec<String> {
    let (name, arguments) = segment(ty);
    let mut all: Vec<String> = arguments.into_iter().flat_map(names).collect();
    all.push(name);
    all
}

fn typescript(ty: &Type) -> String {
    let (name, arguments) = segment(ty);
    match name.as_str() {
        "String" | "str" | "PathBuf" => "string".to_owned(),
        "bool" => "boolean".to_owned(),
        "u16" | "u32" | "u64" | "usize" | "i64" | "isize" => "number".to_owned(),
        "Value" => "unknown".to_owned(),
        "Arc" | "Box" => typescript(arguments[0]),
        "Option" => format!("{} | null", typescript(arguments[0])),
        "Vec" => format!("readonly {}[]", typescript(arguments[0])),
        "BTreeMap" => format!("Readonly<Record<string, {}>>", typescript(arguments[1])),
        _ => name,
    }
}
