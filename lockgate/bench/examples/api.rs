//! `lockgate bench api` alone, for measuring another build: name its program with `--program`.

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    api: lockgate_bench::ApiArguments,
}

fn main() -> Result<(), lockgate_bench::BenchError> {
    lockgate_bench::run(Line::parse().api)
}
