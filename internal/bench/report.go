package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// series are samples by name, one of each per round.
type series map[string][]float64

func (s series) add(name string, v float64) { s[name] = append(s[name], v) }

func median(vs []float64) float64 { return quantile(vs, 0.5) }

// quantile returns the value that the part q of vs does not exceed; NaN for none.
func quantile(vs []float64, q float64) float64 {
	if len(vs) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(vs))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// bar is the promise; the zero bar promises nothing.
type bar struct {
	word  string // "at most" or "at least"
	limit float64
}

func atMost(v float64) bar  { return bar{"≤", v} }
func atLeast(v float64) bar { return bar{"≥", v} }

// verdict returns the verdict on a median.
func (b bar) verdict(v float64) string {
	switch {
	case b.word == "":
		return ""
	case b.word == "≤" && v <= b.limit, b.word == "≥" && v >= b.limit:
		return "holds"
	}
	return "MISSED"
}

type line struct {
	name, unit string
	samples    []float64
	bar        bar
}

// report collects the output of a measurement.
type report struct {
	title    string
	lines    []line
	contests []*contest
}

func (r *report) begin(format string, args ...any) { r.title = fmt.Sprintf(format, args...) }

func (r *report) line(name, unit string, samples []float64, b bar) {
	r.lines = append(r.lines, line{name, unit, samples, b})
}

// print prints the collected output, and clears it.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", r.title)
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for _, l := range r.lines {
		m := median(l.samples)
		spread, promise := "", ""
		if len(l.samples) > 1 {
			spread = fmt.Sprintf("%s … %s", figure(slices.Min(l.samples)), figure(slices.Max(l.samples)))
		}
		if l.bar.word != "" {
			promise = l.bar.word + " " + figure(l.bar.limit)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", l.name, figure(m), l.unit, spread, promise, l.bar.verdict(m))
	}
	t.Flush()
	for _, c := range r.contests {
		c.print(w)
	}
	*r = report{}
}

// figure writes a number with three significant digits.
func figure(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// contest is a table that compares programs.
type contest struct {
	title string
	names []string
	of    []series
	rows  []contestRow
}

type contestRow struct{ about, unit, series string }

// contest adds a table to the report.
func (r *report) contest(title string, all []*contender) *contest {
	c := &contest{title: title}
	for _, p := range all {
		c.names, c.of = append(c.names, p.name), append(c.of, p.of)
	}
	r.contests = append(r.contests, c)
	return c
}

// row adds the medians of a series. The values of the further programs are also shown as multiples of the first one's:
// the median of the multiples of each round, and their range.
func (c *contest) row(about, unit, series string) {
	c.rows = append(c.rows, contestRow{about, unit, series})
}

func (c *contest) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n  %s\t\t%s", c.title, c.names[0])
	for _, name := range c.names[1:] {
		fmt.Fprintf(t, "\t%s\t%s/%s\t", name, name, c.names[0])
	}
	fmt.Fprintln(t)
	for _, row := range c.rows {
		fmt.Fprintf(t, "  %s\t%s\t%s", row.about, row.unit, figure(median(c.of[0][row.series])))
		for _, of := range c.of[1:] {
			m := multiples(of[row.series], c.of[0][row.series])
			fmt.Fprintf(t, "\t%s\t%s\t%s … %s", figure(median(of[row.series])), figure(median(m)), figure(slices.Min(m)),
				figure(slices.Max(m)))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// multiples returns the samples of one series as multiples of those of another, round by round.
func multiples(of, base []float64) []float64 {
	out := make([]float64, min(len(of), len(base)))
	for i := range out {
		out[i] = of[i] / base[i]
	}
	return out
}
