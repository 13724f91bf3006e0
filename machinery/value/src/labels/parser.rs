//! The grammar of a label selector, with the server's words for what it did not expect.

use std::collections::BTreeSet;

use super::lexer::{Token, scan};
use super::{Operator, Requirement, SelectorError};
use crate::names;

/// The requirements of `text`, in the order they are written.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser {
        tokens: scan(text),
        at: 0,
    };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            (Token::Word | Token::Not, _) => {}
            (Token::End, _) => return Ok(requirements),
            (_, found) => return unexpected(found, ", expected: !, identifier, or 'end of string'"),
        }
        let requirement = parser.requirement();
        requirements.push(
            requirement
                .map_err(|error| SelectorError::new(format!("unable to parse requirement: {error}")))?,
        );
        match parser.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => match parser.peek() {
                (Token::Word | Token::Not, _) => {}
                (_, found) => return unexpected(found, ", expected: identifier after ','"),
            },
            (_, found) => return unexpected(found, ", expected: ',' or 'end of string'"),
        }
    }
}

struct Parser<'t> {
    tokens: Vec<(Token, &'t str)>,
    at: usize,
}

impl<'t> Parser<'t> {
    /// The next token, where `in` and `notin` are words like any other.
    fn peek(&self) -> (Token, &'t str) {
        match self.peek_operator() {
            (Token::In | Token::NotIn, text) => (Token::Word, text),
            other => other,
        }
    }

    /// The next token, where `in` and `notin` are operators.
    fn peek_operator(&self) -> (Token, &'t str) {
        self.tokens.get(self.at).copied().unwrap_or((Token::End, ""))
    }

    fn next(&mut self) -> (Token, &'t str) {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let negated = self.peek().0 == Token::Not;
        if negated {
            self.at += 1;
        }
        let (token, key) = self.next();
        if token != Token::Word {
            return unexpected(key, ", expected: identifier");
        }
        let errors = names::qualified_name(key);
        if !errors.is_empty() {
            return Err(SelectorError::new(format!(
                "<nil>: Invalid value: {key:?}: {}",
                errors.join("; ")
            )));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if let (Token::End | Token::Comma, _) = self.peek() {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let (token, text) = self.peek_operator();
        self.at += 1;
        match token {
            Token::In => Ok(Operator::In),
            Token::NotIn => Ok(Operator::NotIn),
            Token::Equals => Ok(Operator::Equals),
            Token::DoubleEquals => Ok(Operator::DoubleEquals),
            Token::NotEquals => Ok(Operator::NotEquals),
            Token::Greater => Ok(Operator::GreaterThan),
            Token::Less => Ok(Operator::LessThan),
            _ => unexpected(text, ", expected: in, notin, =, ==, !=, gt, lt"),
        }
    }

    /// The value of a comparison, which may be empty.
    fn value(&mut self) -> Result<String, SelectorError> {
        if let (Token::End | Token::Comma, _) = self.peek() {
            return Ok(String::new());
        }
        match self.next() {
            (Token::Word, value) => Ok(value.to_owned()),
            (_, found) => unexpected(found, ", expected: identifier"),
        }
    }

    /// The values in parentheses, sorted and each once; an empty place between commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        if let (token, found) = self.next()
            && token != Token::Open
        {
            return unexpected(found, " expected: '('");
        }
        match self.peek() {
            (Token::Word | Token::Comma | Token::Close, _) => {}
            (_, found) => return unexpected(found, ", expected: ',', ')' or identifier"),
        }
        let mut values = BTreeSet::new();
        loop {
            let value = match self.peek() {
                (Token::Word, value) => {
                    self.at += 1;
                    value
                }
                (Token::Comma | Token::Close, _) => "",
                (_, found) => return unexpected(found, ", expected: ',', or identifier"),
            };
            values.insert(value.to_owned());
            match self.next() {
                (Token::Comma, _) => {}
                (Token::Close, _) => return Ok(values.into_iter().collect()),
                (_, found) => return unexpected(found, ", expected: ',' or ')'"),
            }
        }
    }
}

fn unexpected<T>(found: &str, expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError::new(format!("found '{found}'{expected}")))
}
