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
	notes    []string
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
	for _, n := range r.notes {
		fmt.Fprintf(w, "  %s\n", n)
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
