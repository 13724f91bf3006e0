use std::path::PathBuf;

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    arguments: SimulateArguments,
}

fn arguments(words: &str) -> SimulateArguments {
    Line::try_parse_from(["simulate"].into_iter().chain(words.split_whitespace()))
        .unwrap()
        .arguments
}

/// What is printed for arguments and a strategy.
fn printed(words: &str, strategy: &str) -> String {
    let arguments = arguments(&format!("-f strategy.yaml {words}"));
    match play(&arguments, strategy.as_bytes()) {
        Ok(played) => show::table(&played, Paint::OFF, true),
        Err(failure) => format!("error: {failure}"),
    }
}

#[test]
fn a_strategy_without_a_window_goes_one_by_one() {
    let text = printed("--clusters 2", "type: Progressive");
    assert_eq!(
        text,
        "Progressive over 2 clusters in 1 group, 1 at a time, none may fail\n\
         \n\
         TIME   EVENT      CLUSTERS    WHY\n\
         0s     starts     cluster-1   goes now: 1 of 1 places is taken with it\n\
         1m     succeeds   cluster-1   done\n\
         1m     starts     cluster-2   goes now: 1 of 1 places is taken with it\n\
         2m     succeeds   cluster-2   done\n\
         \n\
         Done after 2m\n\
         2 succeeded; at most 1 at a time\n\
         \n\
         Next: the same with --fail-rate 10%\n"
    );
}

#[test]
fn it_says_who_never_started_and_why() {
    let strategy = "type: ProgressivePerGroup\nprogressivePerGroup: {progressDeadline: 5m}\n";
    let text = printed(
        "--clusters 12 --groups dev=2 --clusters-per-group 5 --fail-rate 1",
        strategy,
    );
    assert_eq!(
        text,
        "ProgressivePerGroup over 12 clusters in 3 groups, none may fail, deadline 5m\n\
         \n\
         TIME   EVENT       CLUSTERS                 WHY\n\
         0s     starts      cluster-01, cluster-02   goes now, with group 0 (dev)\n\
         1m     fails       cluster-01, cluster-02   failed, has until 6m to recover\n\
         1m     stops                                2 clusters failed in group 0 (dev), cluster-01 first by name, and none may\n\
         6m     times out   cluster-01, cluster-02   timed out: did not recover within 5m\n\
         \n\
         Stopped after 1m: 2 clusters failed in group 0 (dev), cluster-01 first by name, and none may\n\
         2 timed out, 10 never started; at most 2 at a time\n\
         \n\
         NEVER STARTED                                   WHY\n\
         cluster-03, cluster-04, cluster-05 and 7 more   held: 2 clusters failed in group 0 (dev), cluster-01 first by name, and none may\n"
    );
}

#[test]
fn the_seed_decides_alone() {
    let strategy = include_bytes!("../../../../examples/rollout/progressive.yaml");
    let play = |words: &str| {
        let arguments = arguments(&format!(
            "-f x --clusters 40 --fail-rate 20% --duration 30s-3m {words}"
        ));
        show::json(&play(&arguments, strategy).unwrap())
    };
    assert_eq!(play("--seed 7"), play("--seed 7"));
    assert_eq!(play(""), play("--seed 1"));
    let differ = (1..20).filter(|seed| play(&format!("--seed {seed}"))["timeline"] != play("")["timeline"]);
    assert!(differ.count() >= 17);
}

#[test]
fn likely_failures_are_as_likely_as_they_should_be() {
    let fleet = Fleet {
        clusters: 5000,
        named: &[],
        size: None,
    };
    let fates = Fates {
        fail_rate: "10%".parse().unwrap(),
        takes: "1m-2m".parse().unwrap(),
        seed: 3,
    };
    let drawn = fates.draw(&fleet.groups().unwrap());
    let failing = drawn.values().filter(|fate| !fate.succeeds).count();
    assert!((400..600).contains(&failing), "{failing}");
    let seconds = drawn.values().map(|fate| fate.takes.as_secs());
    assert!((60..=62).contains(&seconds.clone().min().unwrap()));
    assert!((117..=120).contains(&seconds.max().unwrap()));
}

#[test]
fn an_object_may_carry_the_strategy() {
    let bare = "type: Progressive\nprogressive: {maxConcurrency: 25%, maxFailures: 2}\n";
    let carried = bare.replace('\n', "\n    ");
    let policy = format!(
        "apiVersion: policy.karmada.io/v1alpha1\nkind: RolloutPolicy\nspec:\n  resourceSelectors: []\n  strategy:\n    {carried}\
         clustersPerDecisionGroup: 5\n"
    );
    assert_eq!(printed("--clusters 20", &policy), printed("--clusters 20", bare));
    assert!(
        printed("--clusters 20", bare).starts_with("Progressive over 20 clusters in 1 group, 5 at a time")
    );
    let object = "apiVersion: v1\nkind: Policy\nspec: {rolloutStrategy: {type: Progressive}}";
    assert!(printed("", object).starts_with("Progressive over 10 clusters in 1 group"));
    assert_eq!(
        printed("", "kind: Policy\nspec: {}"),
        "error: strategy.yaml: the Policy has neither spec.strategy nor spec.rolloutStrategy"
    );
    assert_eq!(
        printed(
            "",
            "kind: Policy\nspec: {rolloutStrategy: {type: Some, all: {progressDeadline: x}}}"
        ),
        "error: strategy.yaml: spec.rolloutStrategy.type: \"Some\" is no strategy: there are All, Progressive and \
         ProgressivePerGroup\n  spec.rolloutStrategy.all.progressDeadline: \"x\" is not a duration: write numbers with the \
         units h, m and s, such as \"90s\" or \"1h30m\", or \"None\""
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (words, strategy, expected) in [
        ("", "type: [", "error: strategy.yaml: "),
        ("", "", "error: strategy.yaml: "),
        (
            "",
            "type: Progressive\nprogressive: {maxConcurrency: 0}",
            "error: strategy.yaml: progressive.maxConcurrency: 0 clusters at a time would never begin",
        ),
        (
            "--clusters 3 --groups one=2,two=2",
            "{}",
            "error: --groups has 4 clusters and --clusters only 3",
        ),
    ] {
        let text = printed(words, strategy);
        assert!(text.starts_with(expected), "{text}");
    }
    for words in [
        "--clusters 0",
        "--clusters 5001",
        "--clusters -3",
        "--groups canary",
        "--groups canary=0",
        "--groups c=1",
        "--groups -a=1",
        "--clusters-per-group 0",
        "--clusters-per-group 0%",
        "--clusters-per-group x",
        "--fail-rate 1.5",
        "--fail-rate 101%",
        "--fail-rate NaN",
        "--duration 5",
        "--duration 2m-1m",
        "--duration 2d",
        "--seed x",
        "-o yaml",
    ] {
        let line = ["simulate", "-f", "x"]
            .into_iter()
            .chain(words.split_whitespace());
        assert!(Line::try_parse_from(line).is_err(), "{words}");
    }
}

#[test]
fn a_group_that_is_not_there_is_told_of() {
    let text = printed("", include_str!("../../../../examples/rollout/canary.yaml"));
    assert!(
        text.contains(
            "\nwarning: there is no group \"canary\", and nothing goes before the others because of it\n"
        ),
        "{text}"
    );
    let there = printed(
        "--groups canary=2",
        include_str!("../../../../examples/rollout/canary.yaml"),
    );
    assert!(
        !there.contains("warning") && there.contains("group 0 (canary) first, 3 at a time"),
        "{there}"
    );
}

/// The examples are played, and the documentation shows what is printed.
#[test]
fn the_examples_work_and_the_documentation_is_true() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("examples/rollout"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 4);
    let documentation = std::fs::read_to_string(root.join("docs/rollout.md")).unwrap();
    let mut shown = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let commands = text
            .lines()
            .chain(documentation.lines())
            .filter_map(|line| {
                line.trim_start_matches(['#', '$', ' '])
                    .strip_prefix("lockgate rollout simulate ")
            })
            .filter(|command| command.contains(&format!("/{} ", file.file_name().unwrap().display())))
            .map(|command| command.split('#').next().unwrap_or_default());
        let mut count = 0;
        for command in commands {
            count += 1;
            let played = play(&arguments(command), text.as_bytes()).unwrap();
            let output = show::table(&played, Paint::OFF, true);
            let block = format!("$ lockgate rollout simulate {}\n", command.trim());
            if let Some(at) = documentation.find(&block) {
                let rest = &documentation[at + block.len()..];
                let end = rest.find("```").unwrap();
                assert_eq!(&rest[..end], output, "{command}");
                shown += 1;
            }
        }
        assert!(count > 0, "{} is not explained", file.display());
    }
    assert!(shown > 0, "docs/rollout.md shows no output");
}
