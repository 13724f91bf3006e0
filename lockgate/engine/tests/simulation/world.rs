//! A fleet, the people who change it, and the pass of the hub over one template.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::draw::{Draw, strategy};
use crate::laws;
use crate::time;
use jiff::Timestamp;
use lockgate_engine::gate::Followed;
use lockgate_engine::gate::grouping::Selected;
use lockgate_engine::gate::groups::Groups;
use lockgate_engine::gate::record::{Good, Request, RolloutRecord, Verb};
use lockgate_engine::gate::revision::revision_digest;
use lockgate_engine::gate::run::{Act, Marks, Member, Phase, Reach, RunInput, Seen, Target, Told, run};

const CLUSTERS: usize = 200;
/// When people and outages leave the fleet alone.
pub(crate) const QUIET: i64 = 900;
/// Nothing takes longer.
pub(crate) const END: i64 = 500_000;
/// Things happen at multiples of this, so that many happen at once.
const BEAT: i64 = 20;

/// What a cluster is told: a version, and replicas.
pub(crate) type Content = (u32, i64);

/// A cluster's Work.
#[derive(Clone, PartialEq)]
pub(crate) struct Held {
    pub(crate) content: Content,
    pub(crate) told: Told,
    suspended: bool,
    /// Whether the cluster had a copy before.
    had: bool,
}

/// A cluster.
pub(crate) struct Site {
    pub(crate) name: String,
    canary: bool,
    pub(crate) work: Option<Held>,
    pub(crate) suspended: bool,
    pub(crate) resumed: bool,
    pub(crate) down: bool,
    pub(crate) up_since: Timestamp,
    /// What it says of what it was told, since when that counts, and whether it said anything better or worse before.
    pub(crate) seen: Seen,
    pub(crate) since: Timestamp,
    pub(crate) was: bool,
    /// Whether it was seen to fail with what it was told, and not to be well since.
    pub(crate) failed: bool,
    /// How many of its replicas are ready.
    pub(crate) ready: i64,
    /// When its copy is gone, if it is on its way out.
    pub(crate) gone_at: Option<i64>,
    /// What it will say, and when.
    coming: VecDeque<(i64, Seen)>,
}

impl Site {
    /// Whether its Work was held back before it got what that says.
    pub(crate) fn is_unsent(&self) -> bool {
        self.seen == Seen::Unknown && !self.failed && self.present().is_some_and(|held| held.suspended)
    }

    /// Whether it has a copy, of whatever version.
    pub(crate) fn has_copy(&self) -> bool {
        let held = self.present();
        held.is_some_and(|held| held.had || !self.is_unsent())
    }

    /// Its Work, unless that is on its way out.
    pub(crate) fn present(&self) -> Option<&Held> {
        self.work.as_ref().filter(|_| self.gone_at.is_none())
    }
}

/// What every cluster gets.
pub(crate) struct Plan {
    pub(crate) contents: Vec<Option<Content>>,
    digests: Vec<String>,
    digest: String,
}

pub(crate) struct World {
    pub(crate) draw: Draw,
    pub(crate) now: i64,
    pub(crate) sites: Vec<Site>,
    wanted: Rc<Plan>,
    /// What was kept of revisions, by digest.
    kept: BTreeMap<String, Rc<Plan>>,
    version: u32,
    intent: u32,
    pub(crate) record: RolloutRecord,
    pub(crate) followed: Followed,
    asked: Option<Request>,
    requests: usize,
    /// How many clusters in a thousand have trouble with a version.
    trouble: u64,
    next_change: i64,
}

/// What a pass came to.
pub(crate) struct Passed {
    pub(crate) phase: Phase,
    pub(crate) recheck_at: Option<Timestamp>,
    pub(crate) changed: bool,
    /// Whether the hub would look again at once.
    pub(crate) again: bool,
}

fn digest(content: Content) -> String {
    format!("v{} with {}", content.0, content.1)
}

impl Plan {
    fn new(sites: &[Site], contents: Vec<Option<Content>>) -> Rc<Self> {
        let digests: Vec<String> = contents
            .iter()
            .map(|content| content.map(digest).unwrap_or_default())
            .collect();
        let gets = sites
            .iter()
            .zip(&digests)
            .filter(|(_, digest)| !digest.is_empty());
        Rc::new(Self {
            digest: revision_digest(gets.map(|(site, digest)| (site.name.as_str(), digest.as_str()))),
            contents,
            digests,
        })
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = Draw(seed);
        let site = |at: usize| Site {
            name: format!("c{at:03}"),
            canary: at % 17 == 1,
            work: None,
            suspended: false,
            resumed: false,
            down: false,
            up_since: time(0),
            seen: Seen::Unknown,
            since: time(0),
            was: false,
            failed: false,
            ready: 0,
            gone_at: None,
            coming: VecDeque::new(),
        };
        let mut sites: Vec<Site> = (0..CLUSTERS).map(site).collect();
        let contents = (0..CLUSTERS).map(|_| (!draw.one_in(4)).then(|| (1, 1 + draw.below(4) as i64)));
        let contents: Vec<Option<Content>> = contents.collect();
        // Most fleets have had the template before anybody asked for an order.
        if !draw.one_in(4) {
            for (site, content) in sites.iter_mut().zip(&contents) {
                let Some(content) = *content else { continue };
                let told = Told {
                    digest: digest(content),
                    ..Told::default()
                };
                (site.seen, site.ready) = (Seen::Well, content.1);
                site.work = Some(Held {
                    content,
                    told,
                    suspended: false,
                    had: true,
                });
            }
        }
        Self {
            wanted: Plan::new(&sites, contents),
            kept: BTreeMap::new(),
            version: 1,
            intent: 1,
            record: RolloutRecord::default(),
            followed: strategy(&mut draw),
            asked: None,
            requests: 0,
            trouble: draw.pick([2, 10, 60]),
            now: 0,
            next_change: BEAT,
            sites,
            draw,
        }
    }

    /// Moves to the next moment at which something happens, and lets it happen; whether there is one.
    pub(crate) fn pass_time(&mut self, recheck: Option<Timestamp>) -> bool {
        // What is held back does not arrive.
        let coming = self.sites.iter().filter(|site| !site.down && !site.is_unsent());
        let coming = coming.filter_map(|site| site.coming.front().map(|(at, _)| *at));
        let recheck = recheck.map(|at| {
            let after = at.duration_since(time(0));
            after.as_secs() + i64::from(after.subsec_nanos() > 0)
        });
        let change = (self.next_change <= QUIET).then_some(self.next_change);
        let gone = self.sites.iter().filter(|site| !site.down);
        let gone = gone.filter_map(|site| site.gone_at);
        let Some(next) = coming.chain(recheck).chain(change).chain(gone).min() else {
            return false;
        };
        self.now = next.max(self.now);
        if self.next_change <= self.now && self.next_change <= QUIET {
            if self.next_change == QUIET {
                self.calm();
            } else {
                self.disturb();
            }
            let pause = BEAT * (1 + self.draw.below(4) as i64);
            self.next_change = match self.next_change {
                QUIET => QUIET + 1,
                at => (at + pause).min(QUIET),
            };
        }
        let now = time(self.now);
        for site in self.sites.iter_mut().filter(|site| !site.down) {
            if site.gone_at.is_some_and(|at| at <= self.now) {
                (site.work, site.gone_at) = (None, None);
            }
            if site.is_unsent() {
                continue;
            }
            // Of several things that came to pass unseen the last is told.
            let mut last = None;
            while let Some((_, seen)) = site.coming.front().copied().filter(|(at, _)| *at <= self.now) {
                site.coming.pop_front();
                if seen == Seen::Well {
                    site.ready = site.work.as_ref().map_or(0, |held| held.content.1);
                }
                last = Some(seen);
            }
            let Some(seen) = last else { continue };
            let counts = match seen {
                Seen::Well => site.seen != Seen::Well,
                Seen::Bad => !site.was || site.seen == Seen::Well,
                _ => site.seen == Seen::Well,
            };
            if counts {
                site.since = now;
            }
            site.failed = match seen {
                Seen::Well => false,
                Seen::Bad => true,
                _ => site.failed || site.was,
            };
            site.was |= matches!(seen, Seen::Well | Seen::Bad);
            site.seen = seen;
        }
        true
    }

    /// People and the weather.
    fn disturb(&mut self) {
        match self.draw.below(14) {
            0 | 1 => {
                self.version += 1;
                self.intent += 1;
                self.replan(|_, content, version, _| content.map(|content| (version, content.1)));
            }
            2 => {
                self.intent += 1;
                self.replan(|_, content, _, draw| {
                    content.map(|content| (content.0, 1 + draw.below(4) as i64))
                });
            }
            3 => {
                // A few come and go, by the wish of somebody or because clusters do.
                self.intent += self.draw.below(2) as u32;
                self.replan(|_, content, version, draw| match content {
                    content if !draw.one_in(20) => content,
                    Some(_) => None,
                    None => Some((version, 1 + draw.below(4) as i64)),
                });
            }
            4..=6 => {
                for _ in 0..self.draw.below(12) {
                    let at = self.draw.below(CLUSTERS as u64) as usize;
                    self.sites[at].suspended = !self.sites[at].suspended;
                }
            }
            7..=9 => {
                for _ in 0..self.draw.below(12) {
                    let at = self.draw.below(CLUSTERS as u64) as usize;
                    let site = &mut self.sites[at];
                    site.down = !site.down;
                    if !site.down {
                        site.up_since = time(self.now);
                    }
                }
            }
            10 => {
                for _ in 0..self.draw.below(5) {
                    let at = self.draw.below(CLUSTERS as u64) as usize;
                    self.sites[at].canary = !self.sites[at].canary;
                }
            }
            11 => self.followed = strategy(&mut self.draw),
            _ => {
                let verb = self.draw.pick([
                    Verb::Pause,
                    Verb::Resume,
                    Verb::Retry,
                    Verb::Abort,
                    Verb::Promote,
                    Verb::PromoteFull,
                    Verb::Undo,
                ]);
                self.ask(verb);
            }
        }
    }

    fn replan(&mut self, mut change: impl FnMut(usize, Option<Content>, u32, &mut Draw) -> Option<Content>) {
        let contents = self.wanted.contents.iter().enumerate();
        let contents = contents.map(|(at, content)| change(at, *content, self.version, &mut self.draw));
        let contents: Vec<Option<Content>> = contents.collect();
        if contents.iter().any(Option::is_some) {
            self.wanted = Plan::new(&self.sites, contents);
        }
    }

    fn ask(&mut self, verb: Verb) {
        self.requests += 1;
        self.asked = Some(Request {
            id: self.requests.to_string(),
            verb,
            to: None,
            reason: String::new(),
            by: String::new(),
        });
    }

    /// From now on nobody disturbs anything.
    fn calm(&mut self) {
        for site in &mut self.sites {
            site.suspended = false;
            if std::mem::take(&mut site.down) {
                site.up_since = time(self.now);
            }
        }
        if self.record.paused.is_some() || self.asked.as_ref().is_some_and(|asked| asked.verb == Verb::Pause)
        {
            self.ask(Verb::Resume);
        }
    }

    /// What is to be sent: what is wanted, or what is sent in its place.
    fn in_force(&self) -> Rc<Plan> {
        let intent = self.intent.to_string();
        let back = self.record.back(&intent).and_then(|back| back.to.as_ref());
        back.map_or_else(|| self.wanted.clone(), |to| self.kept[&to.digest].clone())
    }

    fn groups(&self, plan: &Plan) -> Groups {
        let labels = |canary| {
            let yes = ("canary".to_owned(), "yes".to_owned());
            BTreeMap::from_iter(Some(yes).filter(|_| canary))
        };
        let members = self
            .sites
            .iter()
            .zip(&plan.contents)
            .filter(|(_, content)| content.is_some());
        let members = members.map(|(site, _)| Selected {
            name: site.name.clone(),
            labels: labels(site.canary),
            claims: BTreeMap::new(),
        });
        self.followed.groups(members, None).unwrap()
    }

    /// One pass of the hub over the template, from what is stored; now and then one that is cut off.
    pub(crate) fn pass(&mut self) -> Passed {
        let plan = self.in_force();
        let intent = self.intent.to_string();
        let now = time(self.now);
        // Where nothing may run twice, what is on its way out is still there.
        let counts = |site: &Site| self.followed.breaks_first || site.gone_at.is_none();
        let is_leaving =
            |site: &Site, content: &Option<Content>| site.work.is_some() && content.is_none() && counts(site);
        let leaving: Vec<usize> = (0..CLUSTERS)
            .filter(|at| is_leaving(&self.sites[*at], &plan.contents[*at]))
            .collect();
        let stays: Vec<usize> = (0..CLUSTERS).filter(|at| plan.contents[*at].is_some()).collect();
        let mut next = self.record.clone();
        if next.back(&intent).is_none() {
            next.back = None;
        }
        let is_there = |at: &usize| {
            let work = self.sites[*at].present().filter(|_| !self.sites[*at].is_unsent());
            work.is_some_and(|held| held.told.digest == plan.digests[*at])
        };
        let everywhere = leaving.is_empty() && stays.iter().all(is_there);
        if next.begin(&plan.digest, everywhere) {
            self.kept.insert(plan.digest.clone(), plan.clone());
        }
        let back = next.back.clone();
        if let Some(request) = self.asked.clone() {
            let seen = next.command.as_ref().map(|command| &command.request.id);
            if seen != Some(&request.id) {
                let mut others = self.kept.keys().filter(|digest| **digest != next.digest);
                let chosen = others.next_back().filter(|_| request.verb == Verb::Undo);
                let chosen = chosen.map(|digest| Good {
                    revision: 1,
                    digest: digest.clone(),
                });
                next.obey(request, &intent, chosen, now);
            }
        }
        if next.back != back {
            // What is there is of another revision than the one that is sent from now on.
            let phase = Phase::Progressing;
            self.record = next;
            return Passed {
                phase,
                recheck_at: None,
                changed: true,
                again: true,
            };
        }
        for at in &stays {
            let site = &mut self.sites[*at];
            site.resumed = site.present().is_some_and(|held| held.suspended) && !site.suspended;
            if site.resumed && site.seen != Seen::Well {
                (site.since, site.was) = (now, false);
            }
        }
        let kept: Vec<Option<String>> = (0..CLUSTERS)
            .map(|at| {
                let (has, wanted) = (self.sites[at].present()?.content, plan.contents[at]?);
                (has.1 > wanted.1).then(|| digest((wanted.0, has.1)))
            })
            .collect();
        let members: Vec<Member<'_>> = stays
            .iter()
            .map(|at| {
                let site = &self.sites[*at];
                let has = site.present().map(|held| held.content.1);
                let grows = has.is_none_or(|has| plan.contents[*at].is_some_and(|wanted| has < wanted.1));
                Member {
                    cluster: &site.name,
                    wanted: &plan.digests[*at],
                    kept: kept[*at].as_deref(),
                    grows: if site.is_unsent() { !site.has_copy() } else { grows },
                    told: site.present().map(|held| &held.told),
                    seen: site.seen,
                    suspended: site.suspended,
                    resumed: site.resumed,
                    unsent: site.is_unsent(),
                    reach: if site.down {
                        Reach::Lost
                    } else {
                        Reach::Since(Some(site.up_since))
                    },
                    due: false,
                    unmade: None,
                }
            })
            .collect();
        let groups = self.groups(&plan);
        let names: Vec<&str> = leaving.iter().map(|at| self.sites[*at].name.as_str()).collect();
        let before = next.clone();
        let input = RunInput {
            record: &before,
            back: before.back.as_ref(),
            followed: &self.followed,
            groups: &groups,
            members: &members,
            leaving: &names,
            now,
        };
        let decided = run(&input);
        next.conclude(&decided, &intent, false, now);
        let turned = next.back != back;
        if next.good != before.good {
            laws::succeeded(self, &input);
        }
        if !turned {
            laws::check(self, &input, &decided, &plan);
        }
        let (phase, recheck_at, removes) = (decided.phase, decided.recheck_at, decided.removes);
        let steps: Vec<(usize, Act, Option<Marks>)> = decided
            .steps
            .iter()
            .zip(&stays)
            .map(|(step, at)| (*at, step.act, step.marks))
            .collect();
        let mut changed = self.record != next;
        self.record = next;
        let leaving: Vec<usize> = leaving
            .into_iter()
            .filter(|at| self.sites[*at].gone_at.is_none())
            .collect();
        let removes = removes && !leaving.is_empty();
        let cut = self.draw.one_in(16).then(|| self.draw.below(30) as usize);
        let passed = |changed, again| Passed {
            phase,
            recheck_at,
            changed,
            again,
        };
        if turned {
            return passed(true, true);
        }
        let mut writes = 0;
        for (at, act, marks) in steps {
            if Some(writes) == cut {
                return passed(changed, true);
            }
            let wrote = self.carry_out(at, act, marks, &plan);
            writes += usize::from(wrote);
            changed |= wrote;
        }
        if removes {
            for at in leaving {
                let takes = BEAT * self.draw.below(3) as i64;
                let site = &mut self.sites[at];
                (site.seen, site.ready, site.was, site.failed) = (Seen::Unknown, 0, false, false);
                site.coming.clear();
                if takes > 0 || site.down {
                    site.gone_at = Some(self.now + takes);
                } else {
                    site.work = None;
                }
            }
        }
        passed(changed | removes, removes)
    }

    /// Does what was decided for one cluster; whether its Work changes.
    fn carry_out(&mut self, at: usize, act: Act, marks: Option<Marks>, plan: &Plan) -> bool {
        let revision = self.record.revision;
        let site = &mut self.sites[at];
        if site.gone_at.is_some() {
            // What is on its way out goes first, and is made again then.
            return false;
        }
        let before = site.work.clone();
        let (unsent, had) = (site.is_unsent(), site.has_copy());
        if let (Act::Release(target), Some((version, mut replicas))) = (act, plan.contents[at]) {
            assert!(!site.suspended, "{} is suspended, and is written", site.name);
            if target == Target::Kept {
                replicas = before.as_ref().map_or(replicas, |held| held.content.1);
            }
            let content = (version, replicas);
            let told = Told {
                digest: digest(content),
                revision,
                ..Told::default()
            };
            site.work = Some(Held {
                content,
                told,
                suspended: false,
                had,
            });
            site.ready = site.ready.min(replicas);
            (site.seen, site.since) = (Seen::Unknown, time(self.now));
            (site.was, site.failed) = (false, false);
            let soon = self.now + BEAT * (1 + self.draw.below(2) as i64);
            site.coming.clear();
            site.coming.push_back((soon, Seen::UnderWay));
            let trouble = self.draw.below(1000) < self.trouble;
            let kind = if trouble { self.draw.below(4) } else { 4 };
            let told: &[(i64, Seen)] = match kind {
                0 => &[(1, Seen::Bad)],
                1 => &[(1, Seen::Bad), (5, Seen::Well)],
                2 => &[(1, Seen::Well), (2, Seen::UnderWay), (4, Seen::Well)],
                3 => &[],
                _ => &[(0, Seen::Well)],
            };
            site.coming
                .extend(told.iter().map(|(beats, seen)| (soon + BEAT * beats, *seen)));
        }
        let Some(held) = &mut site.work else { return false };
        held.suspended = site.suspended || unsent && act == Act::Hold;
        if let Some(marks) = marks {
            held.told.released_at = marks.released_at;
            held.told.healthy_since = marks.healthy_since;
            held.told.failed_since = marks.failed_since;
        }
        site.work != before
    }

    /// Every cluster has what it is to have, and no other has anything.
    pub(crate) fn check_everywhere(&self) {
        let plan = self.in_force();
        for (site, content) in self.sites.iter().zip(&plan.contents) {
            let has = site.present().map(|held| held.content);
            assert_eq!(has, *content, "{}", site.name);
        }
    }
}
