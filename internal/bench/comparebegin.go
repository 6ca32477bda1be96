package main

import "fmt"

// compareBegins is begin for programs.
func compareBegins(b *bench) error {
	all := make([]*contender, len(b.programs))
	for i, p := range b.programs {
		all[i] = &contender{program: p, of: series{}}
	}
	for round := range b.rounds {
		for _, c := range turns(all, round) {
			b.await()
			if err := b.beginOnce(c.program, c.of); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	b.report.begin("Programs in turns, in production mode on a new SQLite file")
	t := b.report.contest("start and memory", all)
	t.row("start to first answer, schema and keys made", "ms", "cold")
	t.row("start to first answer, the second time", "ms", "warm")
	t.row("memory when idle (RSS), schema and keys made", "MiB", "cold idle")
	t.row("memory when idle (RSS), the second time", "MiB", "warm idle")
	return nil
}
