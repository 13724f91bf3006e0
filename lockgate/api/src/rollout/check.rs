//! Reading a strategy that a person wrote: everything that would not mean what it seems to is refused, with its place.

use serde_json::{Map, Value};

use super::{
    ALL, IntOrString, PROGRESSIVE, PROGRESSIVE_PER_GROUP, RolloutConfig, RolloutStrategy, parse_deadline,
    parse_duration, parse_threshold,
};

const FIELDS: [&str; 4] = ["type", "all", "progressive", "progressivePerGroup"];
const CONFIG_FIELDS: [&str; 5] = [
    "minSuccessTime",
    "progressDeadline",
    "maxFailures",
    "mandatoryDecisionGroups",
    "maxConcurrency",
];
/// A strategy lists no more mandatory groups than this.
const MAX_MANDATORY: usize = 256;

/// Something in a strategy that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it is, such as `progressive.maxFailures`.
    pub field: String,
    /// What is wrong, and what to write.
    pub message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A strategy, if all of it is as it should be; also the parts that its type does not look at.
pub fn read(value: &Value) -> Result<RolloutStrategy, Vec<Refusal>> {
    let mut refused = Refusals::default();
    refused.unknown_fields(value);
    if !refused.0.is_empty() {
        return Err(refused.0);
    }
    let strategy: RolloutStrategy = serde_json::from_value(value.clone()).map_err(|error| {
        vec![Refusal {
            field: "strategy".to_owned(),
            message: error.to_string(),
        }]
    })?;
    refused.values(&strategy);
    if refused.0.is_empty() {
        Ok(strategy)
    } else {
        Err(refused.0)
    }
}

#[derive(Default)]
struct Refusals(Vec<Refusal>);

impl Refusals {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Refusal {
            field: field.into(),
            message: message.into(),
        });
    }

    /// Fields that nobody reads are misspelt, and things of the wrong type are not guessed at.
    fn unknown_fields(&mut self, value: &Value) {
        let Some(strategy) = self.object("strategy", value) else {
            return;
        };
        self.names("", strategy, &FIELDS);
        if strategy.get("type").is_some_and(|kind| !kind.is_string()) {
            self.add("type", "is not a text");
        }
        for (part, fields) in [
            ("all", &CONFIG_FIELDS[..3]),
            ("progressive", &CONFIG_FIELDS[..]),
            ("progressivePerGroup", &CONFIG_FIELDS[..4]),
        ] {
            let Some(config) = strategy.get(part).filter(|config| !config.is_null()) else {
                continue;
            };
            if let Some(config) = self.object(part, config) {
                self.names(part, config, fields);
                self.types(part, config);
            }
        }
    }

    fn object<'v>(&mut self, field: &str, value: &'v Value) -> Option<&'v Map<String, Value>> {
        if !value.is_object() {
            self.add(field, "is not an object with fields");
        }
        value.as_object()
    }

    fn names(&mut self, at: &str, object: &Map<String, Value>, known: &[&str]) {
        for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
            let place = if at.is_empty() {
                String::new()
            } else {
                format!("{at}.")
            };
            let message = match name.as_str() {
                "maxConcurrency" | "mandatoryDecisionGroups" if FIELDS.contains(&at) => {
                    format!("has no meaning for {at}")
                }
                _ => format!("is not a field: there are {}", known.join(", ")),
            };
            self.add(format!("{place}{name}"), message);
        }
    }

    fn types(&mut self, part: &str, config: &Map<String, Value>) {
        for (name, value) in config {
            let at = format!("{part}.{name}");
            match name.as_str() {
                "minSuccessTime" | "progressDeadline" if !value.is_string() => {
                    self.add(
                        at,
                        format!("{value} is not a duration: write a text such as \"90s\""),
                    );
                }
                _ if value.is_null() => {}
                "maxFailures" | "maxConcurrency" if !value.is_string() && !value.is_i64() => {
                    let message = format!("{value} is neither a whole number nor a text such as \"25%\"");
                    self.add(at, message);
                }
                "mandatoryDecisionGroups" => match value.as_array() {
                    None => self.add(at, "is not a list"),
                    Some(groups) => self.groups(&at, groups),
                },
                _ => {}
            }
        }
    }

    fn groups(&mut self, at: &str, groups: &[Value]) {
        if groups.len() > MAX_MANDATORY {
            self.add(at, format!("has more than {MAX_MANDATORY} groups"));
        }
        for (number, group) in groups.iter().enumerate().take(MAX_MANDATORY) {
            let at = format!("{at}[{number}]");
            let Some(group) = self.object(&at, group) else {
                continue;
            };
            self.names(&at, group, &["groupName", "groupIndex"]);
            if group.get("groupName").is_some_and(|name| !name.is_string()) {
                self.add(format!("{at}.groupName"), "is not a text");
            }
            let index = group.get("groupIndex");
            if index.is_some_and(|index| !index.as_i64().is_some_and(|i| (0..=i32::MAX.into()).contains(&i)))
            {
                self.add(
                    format!("{at}.groupIndex"),
                    "is not the index of a group: the first is 0",
                );
            }
        }
    }

    fn values(&mut self, strategy: &RolloutStrategy) {
        if !["", ALL, PROGRESSIVE, PROGRESSIVE_PER_GROUP].contains(&strategy.kind.as_str()) {
            let message = format!(
                "{:?} is no strategy: there are {ALL}, {PROGRESSIVE} and {PROGRESSIVE_PER_GROUP}",
                strategy.kind
            );
            self.add("type", message);
        }
        for (part, config) in [
            ("all", &strategy.all),
            ("progressive", &strategy.progressive),
            ("progressivePerGroup", &strategy.progressive_per_group),
        ] {
            if let Some(config) = config {
                self.config(part, config);
            }
        }
    }

    fn config(&mut self, part: &str, config: &RolloutConfig) {
        let soak = &config.min_success_time;
        if !soak.is_empty()
            && let Err(error) = parse_duration(soak)
        {
            self.add(format!("{part}.minSuccessTime"), error.to_string());
        }
        if let Err(error) = parse_deadline(&config.progress_deadline) {
            let message = format!("{error}, or \"None\"");
            self.add(format!("{part}.progressDeadline"), message);
        }
        if let Some(value) = &config.max_failures {
            self.threshold(&format!("{part}.maxFailures"), value);
        }
        if let Some(value) = &config.max_concurrency {
            let at = format!("{part}.maxConcurrency");
            self.threshold(&at, value);
            if matches!(value, IntOrString::Int(0))
                || matches!(value, IntOrString::Text(text) if text == "0%" || text == "00%")
            {
                self.add(at, "0 clusters at a time would never begin: write 1 or more");
            }
        }
    }

    /// A whole number, or a whole percentage of at most 100.
    fn threshold(&mut self, at: &str, value: &IntOrString) {
        match (parse_threshold(value), value) {
            (Err(error), _) => self.add(at, error.to_string()),
            (Ok(_), IntOrString::Int(count)) if *count < 0 => {
                self.add(at, format!("{count} is negative: write 0 or more"));
            }
            (Ok(_), IntOrString::Text(text)) if !is_plain_percentage(text) => {
                let message = format!("{text:?} is not a whole percentage between \"0%\" and \"100%\"");
                self.add(at, message);
            }
            _ => {}
        }
    }
}

fn is_plain_percentage(text: &str) -> bool {
    let number = text.strip_suffix('%').unwrap_or_default();
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    digits && (number == "100" || (1..=2).contains(&number.len()))
}
