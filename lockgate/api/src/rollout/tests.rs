use std::time::Duration;

use serde_json::{Value, json};

use super::*;

#[test]
fn thresholds_are_exact() {
    // Text, population, expected.
    let table = [
        ("30%", 100, 30),
        ("7%", 100, 7),
        ("14%", 100, 14),
        ("28%", 100, 28),
        ("55%", 100, 55),
        ("56%", 100, 56),
        ("33%", 3, 1),
        ("34%", 3, 2),
        ("1%", 0, 0),
        ("0%", 10, 0),
        ("10.5%", 10, 2),
        (".5%", 10, 1),
        ("5.%", 20, 1),
        ("-5%", 10, 0),
        ("-50%", 10, -5),
        ("+5%", 20, 1),
        ("999999999.999999999%", 1, 10_000_000),
    ];
    for (text, population, expected) in table {
        let threshold = parse_threshold(&IntOrString::Text(text.to_owned())).unwrap();
        assert_eq!(threshold.of(population), expected, "{text} of {population}");
    }
    for population in 0..=300_usize {
        for percent in 0..=100_usize {
            let threshold = parse_threshold(&IntOrString::Text(format!("{percent}%"))).unwrap();
            assert_eq!(
                threshold.of(population),
                (percent * population).div_ceil(100) as i128
            );
        }
    }
    assert_eq!(Threshold::Count(-3).of(7), -3);
    for text in [
        "",
        "%",
        "5",
        "abc%",
        "5%%",
        "5 %",
        " 5%",
        "1e1%",
        "--5%",
        "+-5%",
        "1.2.3%",
        ".%",
        "NaN%",
        "٣%",
        "9999999999%",
    ] {
        let error = parse_threshold(&IntOrString::Text(text.to_owned())).unwrap_err();
        assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
    }
}

#[test]
fn durations_are_read_as_clients_write_them() {
    let table = [
        ("0", Some(0)),
        ("+0", Some(0)),
        ("-0s", Some(0)),
        ("90s", Some(90_000)),
        ("1h30m", Some(5_400_000)),
        ("1h0m0s", Some(3_600_000)),
        ("1.5h", Some(5_400_000)),
        (".5s", Some(500)),
        ("1.s", Some(1_000)),
        ("250ms", Some(250)),
        ("1000000µs", Some(1_000)),
        ("2562047h", Some(9_223_369_200_000)),
        ("0.1234567890123456789012345s", Some(123)),
        ("", None),
        ("-", None),
        ("5", None),
        ("00", None),
        ("s", None),
        (".s", None),
        ("5d", None),
        ("5 s", None),
        ("5s ", None),
        ("-5s", None),
        ("2562048h", None),
        ("99999999999999999999999999999999999999999999h", None),
    ];
    for (text, milliseconds) in table {
        let read = parse_duration(text).ok().map(|duration| duration.as_millis());
        assert_eq!(read, milliseconds, "{text:?}");
    }
    assert!(matches!(parse_duration("-5s"), Err(DurationError::Negative(_))));
    assert!(matches!(
        parse_duration("999999999h"),
        Err(DurationError::TooLong(_))
    ));
}

#[test]
fn durations_are_written_shortly_and_read_back() {
    let table = [
        (0, "0s"),
        (90, "90ms"),
        (999, "999ms"),
        (1000, "1s"),
        (60_000, "1m"),
        (61_000, "1m1s"),
        (3_600_000, "1h"),
        (5_400_000, "1h30m"),
        (90_061_000, "25h1m1s"),
    ];
    for (milliseconds, text) in table {
        let duration = Duration::from_millis(milliseconds);
        assert_eq!(duration_text(duration), text);
        assert_eq!(parse_duration(text), Ok(duration));
    }
}

#[test]
fn a_strategy_that_is_read_is_written_as_it_was() {
    let strategies = [
        json!({}),
        json!({ "type": "All", "all": { "progressDeadline": "None" } }),
        json!({ "type": "Progressive", "progressive": {
            "maxConcurrency": "25%", "maxFailures": 2, "minSuccessTime": "5m", "progressDeadline": "10m",
            "mandatoryDecisionGroups": [{ "groupName": "canary" }, { "groupIndex": 1 }, {}] } }),
        json!({ "type": "ProgressivePerGroup", "progressivePerGroup": { "maxFailures": "0%" } }),
    ];
    for strategy in strategies {
        assert_eq!(serde_json::to_value(read(&strategy).unwrap()).unwrap(), strategy);
    }
}

#[test]
fn only_progressive_is_given_a_window() {
    let said = |value: Value| read(&value).unwrap().one_at_a_time_unless_said();
    let window = |value: Value| {
        let strategy = said(value);
        strategy
            .config()
            .and_then(|config| config.max_concurrency.clone())
    };
    assert_eq!(
        window(json!({ "type": "Progressive" })),
        Some(IntOrString::Int(1))
    );
    assert_eq!(
        window(json!({ "type": "Progressive", "progressive": { "maxConcurrency": 3 } })),
        Some(IntOrString::Int(3))
    );
    assert_eq!(said(json!({})), RolloutStrategy::default());
    assert_eq!(window(json!({ "type": "ProgressivePerGroup" })), None);
}

#[test]
fn what_does_not_mean_what_it_seems_to_is_refused() {
    fn progressive(config: Value) -> Value {
        json!({ "type": "Progressive", "progressive": config })
    }
    let table = [
        (json!([]), "strategy: is not an object with fields"),
        (
            json!({ "type": "Canary" }),
            "type: \"Canary\" is no strategy: there are All, Progressive and ProgressivePerGroup",
        ),
        (json!({ "type": 3 }), "type: is not a text"),
        (
            json!({ "Type": "All" }),
            "Type: is not a field: there are type, all, progressive, progressivePerGroup",
        ),
        (json!({ "all": 3 }), "all: is not an object with fields"),
        (
            json!({ "all": { "maxConcurrency": 3 } }),
            "all.maxConcurrency: has no meaning for all",
        ),
        (
            json!({ "progressivePerGroup": { "maxConcurrency": 3 } }),
            "progressivePerGroup.maxConcurrency: has no meaning for progressivePerGroup",
        ),
        (
            progressive(json!({ "maxFailure": 3 })),
            "progressive.maxFailure: is not a field: there are minSuccessTime, progressDeadline, maxFailures, \
             mandatoryDecisionGroups, maxConcurrency",
        ),
        (
            progressive(json!({ "maxFailures": "abc%" })),
            "progressive.maxFailures: \"abc%\" is neither a number nor a percentage: write a number such as 3, or a \
             text such as \"25%\"",
        ),
        (
            progressive(json!({ "maxFailures": "5" })),
            "progressive.maxFailures: \"5\" is a text: write the number 5 without quotes",
        ),
        (
            progressive(json!({ "maxFailures": -1 })),
            "progressive.maxFailures: -1 is negative: write 0 or more",
        ),
        (
            progressive(json!({ "maxFailures": 1.5 })),
            "progressive.maxFailures: 1.5 is neither a whole number nor a text such as \"25%\"",
        ),
        (
            progressive(json!({ "maxFailures": "10.5%" })),
            "progressive.maxFailures: \"10.5%\" is not a whole percentage between \"0%\" and \"100%\"",
        ),
        (
            progressive(json!({ "maxConcurrency": "101%" })),
            "progressive.maxConcurrency: \"101%\" is not a whole percentage between \"0%\" and \"100%\"",
        ),
        (
            progressive(json!({ "maxConcurrency": 0 })),
            "progressive.maxConcurrency: 0 clusters at a time would never begin: write 1 or more",
        ),
        (
            progressive(json!({ "maxConcurrency": "0%" })),
            "progressive.maxConcurrency: 0 clusters at a time would never begin: write 1 or more",
        ),
        (
            progressive(json!({ "progressDeadline": "2d" })),
            "progressive.progressDeadline: \"2d\" is not a duration: write numbers with the units h, m and s, such as \
             \"90s\" or \"1h30m\", or \"None\"",
        ),
        (
            progressive(json!({ "progressDeadline": 90 })),
            "progressive.progressDeadline: 90 is not a duration: write a text such as \"90s\"",
        ),
        (
            progressive(json!({ "minSuccessTime": "-5m" })),
            "progressive.minSuccessTime: \"-5m\" is negative: write a duration such as \"90s\"",
        ),
        (
            progressive(json!({ "minSuccessTime": "5" })),
            "progressive.minSuccessTime: \"5\" is not a duration: write numbers with the units h, m and s, such as \
             \"90s\" or \"1h30m\"",
        ),
        (
            progressive(json!({ "mandatoryDecisionGroups": {} })),
            "progressive.mandatoryDecisionGroups: is not a list",
        ),
        (
            progressive(json!({ "mandatoryDecisionGroups": [{ "groupIndex": -1 }] })),
            "progressive.mandatoryDecisionGroups[0].groupIndex: is not the index of a group: the first is 0",
        ),
        (
            progressive(json!({ "mandatoryDecisionGroups": [{ "name": "canary", "groupIndex": 1 }] })),
            "progressive.mandatoryDecisionGroups[0].name: is not a field: there are groupName, groupIndex",
        ),
        // Also where the type does not look: a slip there would come alive with a change of the type.
        (
            json!({ "type": "All", "progressive": { "maxFailures": "x" } }),
            "progressive.maxFailures: \"x\" is neither a number nor a percentage: write a number such as 3, or a text \
             such as \"25%\"",
        ),
    ];
    for (strategy, expected) in table {
        let refused = read(&strategy).unwrap_err();
        let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [expected], "{strategy}");
    }
}

/// Whoever mends one slip wants to hear of the next at once.
#[test]
fn everything_that_is_wrong_is_said() {
    let refused =
        read(&json!({ "type": "Some", "progressive": { "maxFailures": "x", "minSuccessTime": "y" } }));
    let fields: Vec<String> = refused
        .unwrap_err()
        .into_iter()
        .map(|refusal| refusal.field)
        .collect();
    assert_eq!(
        fields,
        ["type", "progressive.minSuccessTime", "progressive.maxFailures"]
    );
}
