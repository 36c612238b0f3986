use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{File, FileFormat, Map, Source, Value, ValueKind};
use coord_api::Result;

use super::settings::{Draft, Setting};
use crate::{Config, Secret, StoreUrl, TlsFiles, invalid};

/// Where a configuration comes from; each overrides the one before.
///
/// ```
/// use coordkit::{Config, Override, Sources};
///
/// let config = Config::load(&Sources {
///     environment: [("COORD_STORE".into(), "etcd://localhost".into())].into(),
///     overrides: vec![Override::new("--ttl", "session.ttl", "30s")],
///     ..Sources::default()
/// })?;
/// assert_eq!(config.store.to_string(), "etcd://localhost:2379");
/// assert_eq!(config.session.ttl.as_secs(), 30);
/// # Ok::<(), coordkit::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Sources {
    /// The TOML file, if there is one. Files that it names are relative to it.
    pub file: Option<PathBuf>,
    /// Environment variables; those that are no setting of ours are left alone. [`Sources::process_environment`] gives
    /// this process's own.
    pub environment: BTreeMap<String, String>,
    /// Flags of a command line, say.
    pub overrides: Vec<Override>,
}

/// One setting, given by somebody who overrides file and environment.
#[derive(Clone)]
pub struct Override {
    /// Who says it, for messages: `--ttl`.
    pub by: String,
    /// Which setting: `session.ttl`.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// Settings by key, each with its place.
type Layer = BTreeMap<String, Value>;

/// Of these one is enough; one of a later source overrides all of an earlier one.
const PASSWORDS: [&str; 3] = ["password", "password_file", "password_env"];
/// Variables of ours that are no settings: what `coord run` tells its child, and where the file is.
const OTHER_VARIABLES: [&str; 5] = ["COORD_CONFIG", "COORD_JOB", "COORD_NAME", "COORD_RUN_ID", "COORD_TOKEN"];

// === impl Override ===

impl Override {
    /// `value` for the setting `key`, as told by `by`.
    pub fn new(by: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Override {
        Override {
            by: by.into(),
            key: key.into(),
            value: value.into(),
        }
    }
}

// === impl Sources ===

impl Sources {
    /// The environment of this process, without what is not UTF-8. Of our own variables such a value is kept, with
    /// U+FFFD for what cannot be read: it is to be refused, not passed over.
    pub fn process_environment() -> BTreeMap<String, String> {
        let pair = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?;
            let value = match value.into_string() {
                Ok(value) => value,
                Err(value) if name.starts_with("COORD_") => value.to_string_lossy().into_owned(),
                Err(_) => return None,
            };
            Some((name, value))
        };
        std::env::vars_os().filter_map(pair).collect()
    }

    pub(super) fn load(&self) -> Result<Config> {
        let mut layers = Vec::new();
        if let Some(file) = &self.file {
            layers.push(read_file(file)?);
        }
        layers.push(self.read_environment()?);
        layers.push(self.read_overrides()?);
        one_password(&mut layers)?;
        keep_userinfo(&mut layers);
        let mut builder = config::Config::builder();
        for layer in layers {
            builder = builder.add_source(Flat(layer));
        }
        let merged = builder.build().map_err(|error| invalid(error.to_string()))?;
        let mut settings = Layer::new();
        flatten("", merged.cache, &mut settings);
        let mut draft = Draft::default();
        for (key, value) in settings {
            let Some(setting) = Setting::named(&key) else { continue };
            let origin = value.origin().unwrap_or_default().to_owned();
            (setting.set)(&mut draft, value)
                .map_err(|problem| invalid(format!("{key}: {problem} (given by {origin})")))?;
        }
        self.finish(draft)
    }

    fn read_environment(&self) -> Result<Layer> {
        let mut layer = Layer::new();
        for setting in Setting::ALL {
            let variable = setting.variable();
            if let Some(value) = self.environment.get(&variable) {
                let origin = format!("environment variable {variable}");
                layer.insert(setting.key.to_owned(), Value::new(Some(&origin), value.clone()));
            }
        }
        // Others have variables that begin like ours, too (Kubernetes makes some for a service named coord), so only
        // what looks like a typing error is one.
        for name in self.environment.keys().filter(|name| name.starts_with("COORD_")) {
            if OTHER_VARIABLES.contains(&name.as_str()) || Setting::ALL.iter().any(|known| known.variable() == *name) {
                continue;
            }
            if let Some(meant) = Setting::ALL
                .iter()
                .map(Setting::variable)
                .find(|known| strsim::damerau_levenshtein(known, name) <= 2)
            {
                return Err(invalid(format!(
                    "the environment variable {name} is no setting; did you mean {meant}?"
                )));
            }
        }
        Ok(layer)
    }

    fn read_overrides(&self) -> Result<Layer> {
        let mut layer = Layer::new();
        for Override { by, key, value } in &self.overrides {
            if Setting::named(key).is_none() {
                return Err(unknown_key(key, by));
            }
            layer.insert(key.clone(), Value::new(Some(by), value.clone()));
        }
        Ok(layer)
    }

    fn finish(&self, draft: Draft) -> Result<Config> {
        let Some(url) = &draft.store else {
            return Err(invalid(
                "no store is given; name one with --store, the environment variable COORD_STORE, or `store` in the \
                 configuration file: etcd://localhost:2379, zk://localhost:2181 or mem://",
            ));
        };
        let (store, userinfo) = StoreUrl::parse(url)?;
        let defaults = Config::of(store.clone());
        let mut config = Config {
            user: draft.user.clone(),
            password: self.password(&draft)?,
            allow_plaintext_password: draft.allow_plaintext_password.unwrap_or(false),
            tls: TlsFiles {
                ca: draft.ca,
                certificate: draft.certificate,
                key: draft.key,
                domain: draft.domain,
            },
            call_deadline: draft.call_deadline,
            stop_within: draft.stop_within.unwrap_or(defaults.stop_within),
            ..defaults
        };
        config.session.name = draft.session_name.unwrap_or(config.session.name);
        config.session.ttl = draft.ttl.unwrap_or(config.session.ttl);
        config.session.backoff = draft.backoff.finish().map_err(invalid)?;
        config.zookeeper.tick = draft.tick.unwrap_or(config.zookeeper.tick);
        config.zookeeper.session_timeout = draft.session_timeout.unwrap_or(config.zookeeper.session_timeout);
        if let Some(userinfo) = userinfo {
            config.take(userinfo)?;
        }
        Ok(config)
    }

    fn password(&self, draft: &Draft) -> Result<Option<Secret>> {
        if let Some(file) = &draft.password_file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| invalid(format!("password_file: cannot read {}: {error}", file.display())))?;
            let password = text.trim_end_matches(['\r', '\n']);
            if password.is_empty() {
                return Err(invalid(format!("password_file: {} is empty", file.display())));
            }
            return Ok(Some(password.into()));
        }
        if let Some(variable) = &draft.password_env {
            let value = self.environment.get(variable).filter(|value| !value.is_empty());
            let missing = || invalid(format!("password_env: the environment variable {variable} is not set"));
            return value.map(|value| Some(value.clone().into())).ok_or_else(missing);
        }
        Ok(draft.password.clone().map(Secret::from))
    }
}

fn read_file(file: &Path) -> Result<Layer> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| invalid(format!("the configuration file {shown} cannot be read: {error}")))?;
    let tables = File::from_str(&text, FileFormat::Toml).collect().map_err(|error| {
        invalid(format!(
            "the configuration file {shown} is no TOML: {}",
            without_text(&error)
        ))
    })?;
    let mut layer = Layer::new();
    flatten("", Value::new(None, ValueKind::Table(tables)), &mut layer);
    let origin = shown.to_string();
    layer
        .into_iter()
        .map(|(key, value)| {
            let Some(setting) = Setting::named(&key) else {
                return Err(unknown_key(&key, &origin));
            };
            let kind = match value.kind {
                ValueKind::String(path) if setting.is_path() => {
                    let beside = file.parent().unwrap_or(Path::new(""));
                    ValueKind::String(beside.join(path).to_string_lossy().into_owned())
                }
                kind => kind,
            };
            Ok((key, Value::new(Some(&origin), kind)))
        })
        .collect()
}

fn unknown_key(key: &str, by: &str) -> coord_api::Error {
    let hint = match Setting::meant_by(key) {
        Some(meant) => format!("did you mean {meant}?"),
        None => {
            let known: Vec<&str> = Setting::ALL.iter().map(|setting| setting.key).collect();
            format!("there are {}", known.join(", "))
        }
    };
    invalid(format!("{key:?} (given by {by}) is no setting; {hint}"))
}

/// Within one source only one way to give the password; those of earlier sources are overridden.
fn one_password(layers: &mut [Layer]) -> Result<()> {
    let mut decided = false;
    for layer in layers.iter_mut().rev() {
        let given: Vec<&str> = PASSWORDS.into_iter().filter(|key| layer.contains_key(*key)).collect();
        if let [one, other, ..] = given[..]
            && !decided
        {
            return Err(invalid(format!(
                "{one} and {other} are both given; one of them is enough"
            )));
        }
        if decided {
            PASSWORDS.iter().for_each(|key| drop(layer.remove(*key)));
        }
        decided |= !given.is_empty();
    }
    Ok(())
}

/// A later source that names the same place, but not who we are there, does not make us forget what an earlier one says
/// about that: `coord run` tells its child the place alone, and the file.
fn keep_userinfo(layers: &mut [Layer]) {
    let place = |layer: &Layer| {
        let url = layer.get("store")?.clone().into_string().ok()?;
        StoreUrl::parse(&url).ok()
    };
    let mut known: Option<(StoreUrl, Value)> = None;
    for layer in layers {
        match (place(layer), &known) {
            (Some((url, Some(_))), _) => known = layer.get("store").cloned().map(|text| (url, text)),
            (Some((url, None)), Some((same, text))) if url == *same => drop(layer.insert("store".into(), text.clone())),
            (Some(_), _) => known = None,
            (None, _) => {}
        }
    }
}

/// Tables within tables as `outer.inner`. An empty table holds nothing.
fn flatten(prefix: &str, value: Value, into: &mut Layer) {
    match value.kind {
        ValueKind::Table(table) => {
            for (key, value) in table {
                let key = if prefix.is_empty() {
                    key
                } else {
                    format!("{prefix}.{key}")
                };
                flatten(&key, value, into);
            }
        }
        _ => drop(into.insert(prefix.to_owned(), value)),
    }
}

/// The parser quotes the line that it stumbled over, which may hold a password.
fn without_text(error: &config::ConfigError) -> String {
    let message = error.to_string();
    let quoted = |line: &str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')
            .starts_with('|')
    };
    let lines: Vec<&str> = message.lines().filter(|line| !quoted(line)).map(str::trim).collect();
    lines.join("; ")
}

/// A layer, for the crate that merges them.
#[derive(Debug, Clone)]
struct Flat(Layer);

impl Source for Flat {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone().into_iter().collect())
    }
}
