use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shout(arguments: &[Value]) -> Result<Value, String> {
    match arguments {
        [Value::String(text)] => Ok(json!([text.to_uppercase()])),
        _ => Err("it takes a text".to_owned()),
    }
}

const MODULES: &[Module<'static>] = &[Module {
    name: "voice",
    functions: &[("shout", shout)],
}];

fn limits() -> Limits {
    Limits {
        steps: 200_000,
        memory: 4 * 1024 * 1024,
        source: 10_000,
        time: Duration::from_secs(60),
    }
}

fn run(source: &str, arguments: &[&Value]) -> Result<Vec<Value>, ScriptError> {
    call(source, "f", arguments, arguments, MODULES, limits())
}

/// What an expression comes to.
fn is(expression: &str) -> Value {
    match run(
        &format!("function f(x) return {expression} end"),
        &[&json!({"a": [1, 2]})],
    ) {
        Ok(mut values) => match values.len() {
            0 => Value::Null,
            1 => values.remove(0),
            _ => Value::Array(values),
        },
        Err(error) => Value::String(error.to_string()),
    }
}

#[test]
fn values_go_in_and_come_out() {
    let value = json!({
        "spec": {"replicas": 3, "weight": 1.5, "paused": false, "name": "ü", "list": [], "map": {}, "items": [{"a": []}]},
    });
    let same = run("function f(x) return x end", &[&value]).unwrap();
    assert_eq!(same.first(), Some(&value));
    let copied = run(
        "function f(x) return {other = x.spec.list, mine = {}} end",
        &[&value],
    )
    .unwrap();
    assert_eq!(copied, [json!({"other": []})]);
    let like = json!({"list": ["x"], "map": {"y": 1}});
    let made = call(
        "function f() return {list = {}, map = {}, none = {}} end",
        "f",
        &[],
        &[&like],
        &[],
        limits(),
    );
    assert_eq!(made.unwrap(), [json!({"list": [], "map": {}})]);
    assert_eq!(
        run("function f() return 1, 'b', nil, true end", &[]).unwrap(),
        [json!(1), json!("b"), json!(null), json!(true)]
    );
    assert_eq!(run("function f() end", &[]).unwrap(), Vec::<Value>::new());
    assert_eq!(is("{}"), json!({}));
    assert_eq!(is("7 / 2"), json!(3.5));
    assert_eq!(is("2 ^ 40"), json!(1_099_511_627_776_i64));
}

#[test]
fn what_no_double_holds_comes_back_where_it_is_not_changed() {
    let value = json!({
        "neg": -9_007_199_254_740_993_i64, "big": i64::MAX, "huge": u64::MAX,
        "list": [i64::MAX - 1, {"n": i64::MAX - 2}, {"n": i64::MAX - 3}, 9_007_199_254_740_993_i64],
        "n": 1,
    });
    let answer = run("function f(x) x.n = 2 return x end", &[&value]).unwrap();
    let mut expected = value.clone();
    expected["n"] = json!(2);
    assert_eq!(answer, [expected]);
    // What was in another object, in the same place, is that.
    let (mine, theirs) = (json!({"id": 5}), json!({"id": i64::MAX}));
    let kept = run("function f(a, b) a.id = b.id return a end", &[&mine, &theirs]).unwrap();
    assert_eq!(kept, [json!({"id": i64::MAX})]);
    // A first item that goes leaves the others as they are.
    let moved = run(
        "function f(x) table.remove(x, 1) return x end",
        &[&json!([1, i64::MAX])],
    );
    assert_eq!(moved.unwrap(), [json!([i64::MAX])]);
    // What a script changes is what it says.
    let changed = run("function f(x) x.id = x.id / 2 return x end", &[&theirs]).unwrap();
    assert_eq!(changed, [json!({"id": 4_611_686_018_427_387_904_i64})]);
}

#[test]
fn nulls_stay_where_they_are() {
    let value = json!({
        "gap": [1, null, 2], "last": [1, null], "only": [null, null], "first": [null, {"a": null}],
        "map": {"a": null, "b": 1}, "none": {"a": null},
    });
    let same = run("function f(x) return x end", &[&value]).unwrap();
    assert_eq!(same.first(), Some(&value));
    let set = "function f(x) x.gap[2] = 5 x.map.a = 6 x.last[3] = 7 x.none = {} return x end";
    let set = run(set, &[&value]).unwrap();
    assert_eq!(set[0]["gap"], json!([1, 5, 2]));
    assert_eq!(set[0]["map"], json!({"a": 6, "b": 1}));
    assert_eq!(set[0]["last"], json!([1, null, 7]));
    assert_eq!(set[0]["none"], json!({}));
    // Who answers with something else does not speak of what is not there.
    let part = call(
        "function f(x) return x.map end",
        "f",
        &[&value],
        &[],
        &[],
        limits(),
    );
    assert_eq!(part.unwrap(), [json!({"b": 1})]);
    let error = run("function f(x) x.gap[5] = 1 return x end", &[&value]).unwrap_err();
    assert!(error.to_string().contains("a list with gaps"), "{error}");
}

#[test]
fn what_is_raised_and_no_text_is_told_without_its_address() {
    for (source, told) in [
        ("function f() error({}) end", "an error that is a table"),
        ("function f() error({code = 7}) end", "an error that is a table"),
        (
            "function f() error(function() end) end",
            "an error that is a function",
        ),
        ("function f() error() end", "an error that is nil"),
        ("function f() error(true) end", "an error that is a boolean"),
        ("error({}) function f() end", "an error that is a table"),
        ("function f() error(42, 0) end", "42"),
        (
            "function f() pcall(error, {}) error({}) end",
            "an error that is a table",
        ),
        (
            "function f() error(setmetatable({}, {__tostring = function() return 'no boat' end})) end",
            "no boat",
        ),
        (
            "function f() error(setmetatable({}, {__tostring = function() error({}) end})) end",
            "an error that is a table",
        ),
    ] {
        let error = run(source, &[]).unwrap_err();
        assert_eq!(error, ScriptError::Failed(told.to_owned()), "{source}");
    }
    let endless = "function f() error(setmetatable({}, {__tostring = function() while true do end end})) end";
    assert_eq!(run(endless, &[]), Err(ScriptError::TooManySteps(200_000)));
}

#[test]
fn lua_is_5_1() {
    for (expression, value) in [
        ("tostring(10)", json!("10")),
        ("10 / 5 .. ''", json!("2")),
        ("#x.a", json!(2)),
        ("unpack({1, 2})", json!([1, 2])),
        ("math.floor(2.7)", json!(2)),
        ("('x'):rep(3)", json!("xxx")),
        ("string.format('%05.1f|%s|%d', 2.25, 'a', 3)", json!("002.2|a|3")),
        ("select('#', nil, nil)", json!(2)),
        ("table.concat({1, 2, 3}, '-')", json!("1-2-3")),
        ("pcall(error, 'no')", json!([false, "no"])),
        ("(pcall(function() return 1 end))", json!(true)),
        ("pcall(function(...) return ... end, 1, 2)", json!([true, 1, 2])),
        ("select(2, pcall(error, {code = 7})).code", json!(7)),
        ("type(select(2, pcall(error)))", json!("nil")),
        ("pcall(42)", json!([false, "attempt to call a number value"])),
        ("type(select(2, pcall(string.rep)))", json!("string")),
        (
            "select(2, xpcall(function() error({code = 7}) end, function(e) return e.code end))",
            json!(7),
        ),
        ("type(settle) .. type(_G) .. type(getfenv)", json!("nilnilnil")),
        ("tostring({})", json!("table")),
        ("tostring(print)", json!("function")),
        (
            "type(os) .. type(io) .. type(debug) .. type(coroutine) .. type(loadstring)",
            json!("nilnilnilnilnil"),
        ),
        ("math.random", json!(null)),
        ("require('voice').shout('hey')[1]", json!("HEY")),
    ] {
        assert_eq!(is(expression), value, "{expression}");
    }
    let sorted = "function f() local t = {5, 3, 9, 1, 7, 2} table.sort(t) table.insert(t, 1, 0) table.remove(t) \
                  table.sort(t, function(a, b) return a > b end) return t end";
    assert_eq!(run(sorted, &[]).unwrap(), [json!([7, 5, 3, 2, 1, 0])]);
}

#[test]
fn patterns_are_those_of_lua() {
    for (expression, value) in [
        ("('hello world'):find('wor')", json!([7, 9])),
        ("('hello'):find('l+')", json!([3, 4])),
        ("('a.b'):find('.', 1, true)", json!([2, 2])),
        (
            "('key = value'):match('^(%w+)%s*=%s*(%w+)$')",
            json!(["key", "value"]),
        ),
        (
            "('2026-11-15'):match('(%d+)-(%d+)-(%d+)')",
            json!(["2026", "11", "15"]),
        ),
        ("('abc'):match('()b()')", json!([2, 3])),
        ("('nginx:1.19'):match(':(.+)$')", json!("1.19")),
        ("('none'):match('%d')", json!(null)),
        ("('THE (quick) fox'):find('%((%a+)%)')", json!([5, 11, "quick"])),
        ("('f(a(b)c)d'):match('%b()')", json!("(a(b)c)")),
        ("('THE fox'):gsub('%f[%a]%a+', 'x')", json!(["x x", 2])),
        ("('abab'):match('(ab)%1')", json!("ab")),
        ("('hello'):gsub('l', {l = 'L'})", json!(["heLLo", 2])),
        ("('hello'):gsub('(l)(l)', '%2%1<%0>')", json!(["hell<ll>o", 1])),
        ("('hello'):gsub('', '-')", json!(["-h-e-l-l-o-", 6])),
        (
            "('abc'):gsub('%w', function(c) if c == 'b' then return 'B' end end)",
            json!(["aBc", 3]),
        ),
        ("('aaa'):gsub('a', 'b', 2)", json!(["bba", 2])),
        ("('  x '):gsub('^%s+', '')", json!(["x ", 1])),
        ("('[x]'):match('[%[%]]')", json!("[")),
        ("('a]b'):match('[]]')", json!("]")),
        ("('a-b'):match('[a%-]+')", json!("a-")),
        ("('abc'):find('b', -1)", json!(null)),
        ("('abc'):find('', 10)", json!(null)),
        ("('x'):rep(-1)", json!("")),
        (
            "('a,b,,c'):gsub('[^,]*', '<%0>')",
            json!(["<a><>,<b><>,<>,<c><>", 7]),
        ),
        ("('abc'):match('.-c')", json!("abc")),
        ("('ac'):match('ab?c')", json!("ac")),
    ] {
        assert_eq!(is(expression), value, "{expression}");
    }
    let words = "function f(x) local t = {} for k, v in x:gmatch('(%w+)=(%w+)') do t[k] = v end return t end";
    assert_eq!(
        run(words, &[&json!("a=1, b=2")]).unwrap(),
        [json!({"a": "1", "b": "2"})]
    );
    for (expression, error) in [
        ("('x'):find('%')", "malformed pattern (ends with '%')"),
        ("('x'):find('[a')", "malformed pattern (missing ']')"),
        ("('x'):find('(x')", "unfinished capture"),
        ("('x'):find('x)')", "invalid capture index"),
        ("('x'):gsub('x', '%2')", "invalid capture index"),
    ] {
        let told = is(expression);
        assert!(told.as_str().unwrap().contains(error), "{expression}: {told}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (source, part) in [
        ("function f( return 1 end", "the script cannot be read: script:1:"),
        ("function g() end", "the script defines no function f"),
        ("f = 3", "the script defines no function f"),
        (
            "function f()\n  error('no good')\nend",
            "the script failed: script:2: no good",
        ),
        (
            "function f(x) return x.spec.replicas end",
            "the script failed: script:1: attempt to index",
        ),
        (
            "function f() return function() end end",
            "nonsense: the answer is a function",
        ),
        (
            "function f() return {a = {b = f}} end",
            "nonsense: /a/b is a function",
        ),
        (
            "function f() return {1, 2, x = 3} end",
            "half a list and half a map",
        ),
        (
            "function f() local t = {} t[1] = 1 t[5] = 2 return t end",
            "a list with gaps",
        ),
        ("function f() return 0 / 0 end", "nonsense: the answer is"),
        (
            "function f() return '\\255' end",
            "nonsense: the answer is not text",
        ),
        (
            "function f() local t = {} t.t = t return t end",
            "nested too deeply, or in itself",
        ),
        (
            "function f() return require('os') end",
            "there is no module \"os\"; there is voice",
        ),
        (
            "function f() return require('voice').shout(1) end",
            "shout: it takes a text",
        ),
        ("function f() return f.x.y end", "attempt to index"),
        (
            "function f()\n  return string.upper(nil)\nend",
            "script:2: bad argument #1 to",
        ),
        ("\x1bLua", "the script cannot be read"),
    ] {
        let error = run(source, &[&json!({})]).unwrap_err().to_string();
        assert!(error.contains(part), "{source}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let long = format!("-- {}", "x".repeat(10_000));
    assert!(matches!(run(&long, &[]), Err(ScriptError::TooLong { .. })));
}

#[test]
fn every_call_ends() {
    for source in [
        "function f() while true do end end",
        "while true do end",
        "function f() return f() end",
        "function f() while true do pcall(function() while true do end end) end end",
        "function f() local t = {} table.insert(t, -1e15, 1) end",
        "function f() for _ in ('x'):gmatch('') do while true do end end end",
        "function f() return ('a'):rep(40):find(('a-'):rep(40) .. 'b') end",
        "function f() return ('a'):rep(100):find(('a*'):rep(20) .. 'b') end",
        "function f() table.sort({1, 2, 3}, function() while true do end end) end",
        "function f() string.rep('', 1e15) while true do end end",
        "function f() xpcall(function() while true do end end, function() return 1 end) while true do end end",
    ] {
        assert_eq!(
            run(source, &[]),
            Err(ScriptError::TooManySteps(200_000)),
            "{source}"
        );
    }
    for source in [
        "function f() local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end end",
        "function f() local s = 'x' while true do s = s .. s end end",
        "function f() return ('x'):rep(1e9) end",
    ] {
        assert_eq!(
            run(source, &[]),
            Err(ScriptError::TooMuchMemory(4 * 1024 * 1024)),
            "{source}"
        );
    }
    // Deep recursion is an error of its own.
    let error = run("function f() return 1 + f() end", &[]).unwrap_err();
    assert!(
        matches!(&error, ScriptError::Failed(why) if why.contains("stack overflow"))
            || matches!(error, ScriptError::TooManySteps(_)),
        "{error:?}"
    );
}

/// Each of these takes few instructions, and much of everything else.
#[test]
fn long_texts_and_large_tables_count_by_their_size() {
    let long = "local s = string.rep('x', 65536) ";
    for body in [
        "while true do local t = s:upper() end",
        "while true do local t = s:lower() end",
        "while true do local t = s:reverse() end",
        "while true do local t = s:sub(2) end",
        "while true do local t = string.format('%s', s) end",
        "while true do local t = tonumber(s) end",
        "while true do local t = table.concat({s, s}) end",
        "local t = {} for i = 1, 5000 do t[i] = '' end while true do local c = table.concat(t) end",
        "local t = {} for i = 1, 5000 do t[i] = '' end while true do local c = unpack(t) end",
        "while true do pcall(string.upper, s) end",
        "local t = {s} while true do pcall(require('voice').shout, t) end",
        "while true do local t = require('voice').shout(s) end",
        "local t = {s} for i = 1, 60 do t = {t, t} end return t",
        "local t = {1} for i = 1, 60 do t = {t, t} end return t",
        "local t = {1} for i = 1, 60 do t = {t, t} end return require('voice').shout(t)",
        "local t = {} for i = 1, 1000 do t[i] = s end return t",
        "local n, t = {}, {} for i = 1, 5000 do n[i] = 'k' end \
         for i = 1, 100 do t[i] = setmetatable({a = 1}, {__nulls = n}) end return t",
    ] {
        let source = format!("function f() {long} {body} end");
        assert_eq!(
            run(&source, &[]),
            Err(ScriptError::TooManySteps(200_000)),
            "{body}"
        );
    }
    let source = "function f() return (('x'):rep(1000):gsub('x', ('y'):rep(100000))) end";
    assert_eq!(run(source, &[]), Err(ScriptError::TooMuchMemory(4 * 1024 * 1024)));
    // What is small is hardly dearer than before.
    let many = "function f() local n = 0 for i = 1, 5000 do n = n + #(('name-' .. i):upper():sub(2, 5)) end return n end";
    assert_eq!(run(many, &[]).unwrap(), [json!(20_000)]);
}

#[test]
fn what_cannot_be_counted_is_ended_by_the_clock() {
    let quick = Limits {
        time: Duration::from_millis(50),
        steps: u64::MAX,
        ..limits()
    };
    for body in [
        "while true do local t = s .. 'x' end",
        "while s <= s do end",
        "while pcall(function() while true do local t = s .. 'x' end end) do end while true do end",
    ] {
        let source = format!("function f() local s = string.rep('x', 524288) {body} end");
        let ended = call(&source, "f", &[], &[], MODULES, quick);
        assert_eq!(ended, Err(ScriptError::TooSlow(quick.time)), "{body}");
    }
}

#[test]
fn nothing_is_kept_between_calls() {
    let source = "count = (count or 0) + 1 function f() count = count + 1 return count end";
    for _ in 0..3 {
        assert_eq!(run(source, &[]).unwrap(), [json!(2)]);
    }
    assert_eq!(check(source, "f", MODULES, limits()), Ok(()));
    assert!(check(source, "g", MODULES, limits()).is_err());
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-1_000_000_i64..1_000_000).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zü%.]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_value_survives(value in any_value()) {
        prop_assert_eq!(run("function f(x) return x end", &[&value]).unwrap(), [value]);
    }

    #[test]
    fn no_source_panics(source in "[a-z(){}='\" \\[\\].,%0-9\n]{0,60}") {
        let first = run(&source, &[]);
        prop_assert_eq!(run(&source, &[]), first);
    }

    #[test]
    fn no_pattern_panics(text in "[ab%\\[\\]().*+?^$-]{0,12}", pattern in "[abf%\\[\\]().*+?^$-]{0,8}") {
        let script = "function f(t, p) return pcall(string.gsub, t, p, '<%0>') end";
        let arguments = (Value::from(text), Value::from(pattern));
        let answer = call(script, "f", &[&arguments.0, &arguments.1], &[], &[], limits());
        prop_assert!(answer.is_ok() || answer == Err(ScriptError::TooManySteps(200_000)));
    }
}
