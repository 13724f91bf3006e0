//! Reads an expression into the engine's tree.
//!
//! The engine has a parser of its own, which takes seconds over some texts of a few kilobytes, gives up on others, and keeps
//! no positions. This one takes time in proportion to the text. The number of every node is the place in the text that
//! messages about it point at: an operator, a dot, the parenthesis of a call.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, ListExpr, LiteralValue, MapEntryExpr, MapExpr,
    SelectExpr,
};

use super::lex::{Kind, Token, Unread, lex};
use super::macros;
use super::values::RESERVED;

/// How many brackets, and branches of conditions, may be inside each other.
const MAX_NESTED: usize = 80;
/// How deep the tree may get.
pub(super) const MAX_DEPTH: usize = 250;

/// An expression, and how deep it nests.
pub(super) struct Parsed {
    pub(super) expression: IdedExpr,
    pub(super) depth: usize,
}

/// Reads an expression.
pub(super) fn parse(source: &str) -> Result<Parsed, Unread> {
    let mut parser = Parser {
        source,
        tokens: lex(source)?,
        at: 0,
        nested: 0,
    };
    let parsed = parser.expression()?;
    match parser.peek().kind {
        Kind::End => Ok(parsed),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    nested: usize,
}

/// The operators of one precedence each, the weakest first.
const OPERATORS: [&[(&str, &str)]; 3] = [
    &[
        ("<", op::LESS),
        ("<=", op::LESS_EQUALS),
        (">=", op::GREATER_EQUALS),
        (">", op::GREATER),
        ("==", op::EQUALS),
        ("!=", op::NOT_EQUALS),
        ("in", op::IN),
    ],
    &[("+", op::ADD), ("-", op::SUBSTRACT)],
    &[("*", op::MULTIPLY), ("/", op::DIVIDE), ("%", op::MODULO)],
];

/// A node at a place in the text.
pub(super) fn node(at: usize, expr: Expr) -> IdedExpr {
    IdedExpr { id: at as u64, expr }
}

pub(super) fn call(at: usize, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(
        at,
        Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }),
    )
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &Token<'a> {
        // The last one is the end, which nothing takes.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek().kind, Kind::Sign(found) if found == sign)
    }

    /// Takes the sign if it comes next, and says where it was.
    fn take(&mut self, sign: &str) -> Option<usize> {
        let found = self.is(sign).then(|| self.peek().start)?;
        self.at += 1;
        Some(found)
    }

    fn expect(&mut self, sign: &str) -> Result<usize, Unread> {
        self.take(sign).ok_or_else(|| self.unexpected())
    }

    fn unexpected(&self) -> Unread {
        let token = self.peek();
        let shown = match token.kind {
            Kind::End => "<EOF>".to_owned(),
            _ => self.source[token.start..token.end].chars().take(80).collect(),
        };
        Unread::new(token.start, format!("Syntax error: unexpected '{shown}'"))
    }

    /// A tree with a new root, if that is not too deep.
    fn grown(&self, expression: IdedExpr, below: usize) -> Result<Parsed, Unread> {
        if below >= MAX_DEPTH {
            let message = format!("the expression nests more than {MAX_DEPTH} levels deep");
            return Err(Unread::new(self.peek().start, message));
        }
        Ok(Parsed {
            expression,
            depth: below + 1,
        })
    }

    fn expression(&mut self) -> Result<Parsed, Unread> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            let message = format!("the expression has more than {MAX_NESTED} brackets inside each other");
            return Err(Unread::new(self.peek().start, message));
        }
        let mut parsed = self.any()?;
        if let Some(at) = self.take("?") {
            let yes = self.any()?;
            self.expect(":")?;
            let no = self.expression()?;
            let below = parsed.depth.max(yes.depth).max(no.depth);
            let args = vec![parsed.expression, yes.expression, no.expression];
            parsed = self.grown(call(at, op::CONDITIONAL, args), below)?;
        }
        self.nested -= 1;
        Ok(parsed)
    }

    fn any(&mut self) -> Result<Parsed, Unread> {
        let first = self.all()?;
        let mut chain = Chain::new(op::LOGICAL_OR, first);
        while let Some(at) = self.take("||") {
            let term = self.all()?;
            chain.push(at, term);
        }
        chain.balanced(self)
    }

    fn all(&mut self) -> Result<Parsed, Unread> {
        let first = self.binary(0)?;
        let mut chain = Chain::new(op::LOGICAL_AND, first);
        while let Some(at) = self.take("&&") {
            let term = self.binary(0)?;
            chain.push(at, term);
        }
        chain.balanced(self)
    }

    /// Operators of this precedence and stronger ones.
    fn binary(&mut self, weakest: usize) -> Result<Parsed, Unread> {
        let mut left = self.unary()?;
        // The next operator on this level; those that bind stronger are taken by the right side.
        while let Some((level, function)) = self.operator().filter(|(level, _)| *level >= weakest) {
            let at = self.peek().start;
            self.at += 1;
            let right = self.binary(level + 1)?;
            let below = left.depth.max(right.depth);
            left = self.grown(call(at, function, vec![left.expression, right.expression]), below)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(usize, &'static str)> {
        let Kind::Sign(sign) = self.peek().kind else {
            return None;
        };
        OPERATORS.iter().enumerate().find_map(|(level, operators)| {
            let (_, function) = operators.iter().find(|(known, _)| *known == sign)?;
            Some((level, *function))
        })
    }

    fn unary(&mut self) -> Result<Parsed, Unread> {
        let (at, sign, function) = match self.peek() {
            Token {
                kind: Kind::Sign("!"),
                start,
                ..
            } => (*start, "!", op::LOGICAL_NOT),
            Token {
                kind: Kind::Sign("-"),
                start,
                ..
            } if !self.is_negative() => (*start, "-", op::NEGATE),
            _ => return self.member(),
        };
        let mut count = 0_usize;
        while self.is(sign) && !(sign == "-" && self.is_negative()) {
            self.at += 1;
            count += 1;
        }
        let operand = self.member()?;
        // Two of them are none, as the server has it.
        if count.is_multiple_of(2) {
            return Ok(operand);
        }
        let below = operand.depth;
        self.grown(call(at, function, vec![operand.expression]), below)
    }

    /// Whether a negative number comes next.
    fn is_negative(&self) -> bool {
        let number = self.tokens.get(self.at + 1).map(|token| &token.kind);
        self.is("-") && matches!(number, Some(Kind::Int(_) | Kind::Double(_)))
    }

    fn member(&mut self) -> Result<Parsed, Unread> {
        let mut operand = self.primary()?;
        loop {
            if let Some(dot) = self.take(".") {
                let optional = self.take("?").is_some();
                let Kind::Name(name) = self.peek().kind else {
                    return Err(self.unexpected());
                };
                self.at += 1;
                let below = operand.depth;
                let target = operand.expression;
                operand = if optional {
                    let field = node(dot, Expr::Literal(LiteralValue::String(name.into())));
                    self.grown(call(dot, op::OPT_SELECT, vec![target, field]), below)?
                } else if let Some(open) = self.take("(") {
                    let (args, deepest) = self.arguments()?;
                    let grown = macros::member(open, name, target, args)?;
                    self.grown(grown, below.max(deepest))?
                } else {
                    let select = SelectExpr {
                        operand: Box::new(target),
                        field: name.to_owned(),
                        test: false,
                    };
                    self.grown(node(dot, Expr::Select(select)), below)?
                };
            } else if let Some(open) = self.take("[") {
                let function = match self.take("?") {
                    Some(_) => op::OPT_INDEX,
                    None => op::INDEX,
                };
                let index = self.expression()?;
                self.expect("]")?;
                let below = operand.depth.max(index.depth);
                let args = vec![operand.expression, index.expression];
                operand = self.grown(call(open, function, args), below)?;
            } else if self.is("{")
                && let Some(name) = qualified(&operand.expression)
            {
                // A message of a type; there are none.
                let message = format!("undeclared reference to '{name}' (in container '')");
                return Err(Unread::new(self.peek().start, message));
            } else {
                return Ok(operand);
            }
        }
    }

    /// What is between the parentheses of a call, and its depth.
    fn arguments(&mut self) -> Result<(Vec<IdedExpr>, usize), Unread> {
        let (mut args, mut deepest) = (Vec::new(), 0);
        if self.take(")").is_some() {
            return Ok((args, deepest));
        }
        loop {
            let argument = self.expression()?;
            deepest = deepest.max(argument.depth);
            args.push(argument.expression);
            if self.take(",").is_none() {
                self.expect(")")?;
                return Ok((args, deepest));
            }
        }
    }

    fn primary(&mut self) -> Result<Parsed, Unread> {
        let token = self.peek().clone();
        let at = token.start;
        if self.is_negative() {
            self.at += 1;
        }
        let literal = match (&self.peek().kind, token.kind == self.peek().kind) {
            (Kind::Int(i64::MIN), true) => return Err(Unread::new(at, "invalid int literal")),
            (Kind::Int(value), positive) => {
                LiteralValue::Int(if positive { *value } else { value.wrapping_neg() }.into())
            }
            (Kind::Double(value), positive) => {
                LiteralValue::Double(if positive { *value } else { -value }.into())
            }
            (Kind::Uint(value), _) => LiteralValue::UInt((*value).into()),
            (Kind::Text(text), _) => LiteralValue::String(text.as_str().into()),
            (Kind::Bytes(bytes), _) => LiteralValue::Bytes(bytes.clone().into()),
            (Kind::Sign("true"), _) => LiteralValue::Boolean(true.into()),
            (Kind::Sign("false"), _) => LiteralValue::Boolean(false.into()),
            (Kind::Sign("null"), _) => LiteralValue::Null,
            (Kind::Sign("("), _) => {
                self.at += 1;
                let inside = self.expression()?;
                self.expect(")")?;
                return Ok(inside);
            }
            (Kind::Sign("["), _) => return self.list(),
            (Kind::Sign("{"), _) => return self.map(),
            (Kind::Sign(".") | Kind::Name(_), _) => return self.name(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        self.grown(node(at, Expr::Literal(literal)), 0)
    }

    /// A variable, or a function that is called.
    fn name(&mut self) -> Result<Parsed, Unread> {
        self.take(".");
        let Token {
            kind: Kind::Name(name),
            start,
            ..
        } = *self.peek()
        else {
            return Err(self.unexpected());
        };
        if RESERVED.contains(&name) {
            return Err(Unread::new(start, format!("reserved identifier: {name}")));
        }
        self.at += 1;
        match self.take("(") {
            Some(open) => {
                let (args, deepest) = self.arguments()?;
                let called = macros::global(open, name, args)?;
                self.grown(called, deepest)
            }
            None => self.grown(node(start, Expr::Ident(name.to_owned())), 0),
        }
    }

    fn list(&mut self) -> Result<Parsed, Unread> {
        let open = self.expect("[")?;
        let mut list = ListExpr::default();
        let mut deepest = 0;
        while self.take("]").is_none() {
            if self.take("?").is_some() {
                list.optional_indices.push(list.elements.len());
            }
            let element = self.expression()?;
            deepest = deepest.max(element.depth);
            list.elements.push(element.expression);
            if self.take(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        self.grown(node(open, Expr::List(list)), deepest)
    }

    fn map(&mut self) -> Result<Parsed, Unread> {
        let open = self.expect("{")?;
        let mut map = MapExpr::default();
        let mut deepest = 0;
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            let colon = self.expect(":")?;
            let value = self.expression()?;
            deepest = deepest.max(key.depth).max(value.depth);
            map.entries.push(IdedEntryExpr {
                id: colon as u64,
                expr: EntryExpr::MapEntry(MapEntryExpr {
                    key: key.expression,
                    value: value.expression,
                    optional,
                }),
            });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.grown(node(open, Expr::Map(map)), deepest)
    }
}

/// A name with dots in it, if the expression is one.
fn qualified(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Terms joined by one operator that knows no order: they become a balanced tree.
struct Chain {
    function: &'static str,
    terms: Vec<IdedExpr>,
    places: Vec<usize>,
    deepest: usize,
}

impl Chain {
    fn new(function: &'static str, first: Parsed) -> Self {
        Self {
            function,
            terms: vec![first.expression],
            places: Vec::new(),
            deepest: first.depth,
        }
    }

    fn push(&mut self, at: usize, term: Parsed) {
        self.places.push(at);
        self.deepest = self.deepest.max(term.depth);
        self.terms.push(term.expression);
    }

    fn balanced(mut self, parser: &Parser<'_>) -> Result<Parsed, Unread> {
        let Some(last) = self.places.len().checked_sub(1) else {
            return Ok(Parsed {
                expression: self.terms.swap_remove(0),
                depth: self.deepest,
            });
        };
        // A balanced tree adds about as many levels as the number of its terms has digits.
        let levels = (usize::BITS - last.leading_zeros()) as usize;
        let expression = self.tree(0, last);
        parser.grown(expression, self.deepest + levels)
    }

    fn tree(&mut self, low: usize, high: usize) -> IdedExpr {
        let middle = (low + high).div_ceil(2);
        let left = if middle == low {
            std::mem::take(&mut self.terms[middle])
        } else {
            self.tree(low, middle - 1)
        };
        let right = if middle == high {
            std::mem::take(&mut self.terms[middle + 1])
        } else {
            self.tree(middle + 1, high)
        };
        call(self.places[middle], self.function, vec![left, right])
    }
}
