use proptest::prelude::*;

use super::*;

#[test]
fn quantities_are_written_as_go_writes_them() {
    let cases = [
        ("0", "0"),
        ("0.0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.5", "1500m"),
        ("100m", "100m"),
        ("0.1", "100m"),
        ("1.2345", "1234500u"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("2000000", "2M"),
        ("1Ki", "1Ki"),
        ("1Gi", "1Gi"),
        ("1024Ki", "1Mi"),
        ("1500Mi", "1500Mi"),
        ("2048Mi", "2Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("0.001Ki", "1024m"),
        ("0.000000000001Ki", "2n"),
        ("1.1Ki", "1126400m"),
        ("0.9n", "1n"),
        ("0.0000000001", "1n"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1200e3", "1200e3"),
        ("1000e3", "1e6"),
        ("1.5e3", "1500"),
        ("1e-3", "1e-3"),
        ("-1", "-1"),
        ("-1.5Gi", "-1536Mi"),
        ("-0.5", "-500m"),
        ("8Ei", "9223372036854775807"),
        ("100Ei", "9223372036854775807"),
        ("1000E", "1e21"),
        ("9223372036854775808", "9223372036854775808"),
        ("1M", "1M"),
        ("1E", "1E"),
        // Go repeats these as they are.
        ("+1", "+1"),
        ("1.234", "1.234"),
        ("001", "001"),
        ("1E3", "1E3"),
    ];
    for (text, expected) in cases {
        let quantity = Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(quantity.to_string(), expected, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    let cases = [
        ("", QuantityError::Format),
        ("abc", QuantityError::Format),
        ("1 ", QuantityError::Format),
        ("1Gi1x", QuantityError::Format),
        ("--1", QuantityError::Suffix),
        ("1.2.3", QuantityError::Format),
        ("1é", QuantityError::Format),
        ("1i", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1mi", QuantityError::Suffix),
        ("1+3", QuantityError::Suffix),
        ("1e99999999999", QuantityError::Suffix),
        ("1e100", QuantityError::Number),
    ];
    for (text, expected) in cases {
        assert_eq!(
            Quantity::parse(text).map(|quantity| quantity.to_string()),
            Err(expected),
            "{text}"
        );
    }
}

#[test]
fn quantities_compare_and_add_up() {
    let quantity = |text: &str| Quantity::parse(text).expect(text);
    assert_eq!(quantity("1000m"), quantity("1"));
    assert_eq!(quantity("1e3"), quantity("1k"));
    assert!(quantity("1Ki") > quantity("1k"));
    assert!(quantity("-1") < quantity("0"));
    let sum = |a: &str, b: &str| quantity(a).checked_add(&quantity(b)).map(|sum| sum.to_string());
    assert_eq!(sum("1Gi", "512Mi").as_deref(), Some("1536Mi"));
    assert_eq!(sum("0", "512Mi").as_deref(), Some("512Mi"));
    assert_eq!(sum("500m", "500m").as_deref(), Some("1"));
    assert_eq!(
        quantity("1").checked_sub(&quantity("1500m")).unwrap().to_string(),
        "-500m"
    );
    assert_eq!(Quantity::from_units(2048, Format::BinarySi).to_string(), "2Ki");
    assert_eq!(Quantity::from_units(1000, Format::BinarySi).to_string(), "1k");
    assert_eq!(Quantity::from_milli(250, Format::DecimalSi).to_string(), "250m");
}

#[test]
fn integers_are_rounded_away_from_zero() {
    let cases = [
        ("1", 1, 1000),
        ("1.1", 2, 1100),
        ("-1.1", -2, -1100),
        ("1n", 1, 1),
        ("0.1m", 1, 1),
        ("1000E", i64::MAX, i64::MAX),
        ("-1000E", i64::MIN, i64::MIN),
    ];
    for (text, units, milli) in cases {
        let quantity = Quantity::parse(text).expect(text);
        assert_eq!((quantity.units(), quantity.milli()), (units, milli), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same_amount(
        text in r"[+-]?[0-9]{0,20}(\.[0-9]{0,12})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]|)",
    ) {
        if let Ok(quantity) = Quantity::parse(&text) {
            let again = Quantity::parse(&quantity.to_string()).unwrap();
            prop_assert_eq!(&again, &quantity);
            prop_assert_eq!(again.to_string(), quantity.to_string());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn sums_agree_with_thousandths(a in -1_000_000_000i64..1_000_000_000, b in -1_000_000_000i64..1_000_000_000) {
        let (one, other) = (Quantity::from_milli(a, Format::DecimalSi), Quantity::from_milli(b, Format::BinarySi));
        prop_assert_eq!(one.checked_add(&other).unwrap().milli(), a + b);
        prop_assert_eq!(one.checked_sub(&other).unwrap().milli(), a - b);
        prop_assert_eq!(one.cmp(&other), a.cmp(&b));
    }
}
