// Package numbering knows the numbering plan of each country (D-PWD-07). A plan has the digits that are dialled
// before a national number and are no part of it, and the lengths of its numbers.
//
// The one idea: a plan is a line of plans.tsv, which tools/numbering generates from libphonenumber's metadata. Lengths
// decide whether a number is accepted, because ranges of numbers change more often than lengths. The pattern decides
// only whether a number contains the prefix: 0 is part of a number in Italy, and 8 begins some numbers in Russia.
//
// Start reading at Plan.National. Numbers are texts of ASCII digits.
package numbering

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"castellan/domain/kit/sorting"
)

//go:generate go -C ../../../tools/numbering run . -out ../../domain/kit/numbering/plans.tsv

//go:embed plans.tsv
var table string

// maxDialDigits is the maximum length of a dialling code.
const maxDialDigits = 3

// Plan describes the numbers of a dialling code. Several countries can share a plan.
type Plan struct {
	prefixes []string // longest first
	lengths  uint     // bit n: numbers of n digits exist
	pattern  func() *regexp.Regexp
}

// plans are the plans by dialling code.
var plans = sync.OnceValue(func() map[string]*Plan {
	all := map[string]*Plan{}
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		p := &Plan{pattern: sync.OnceValue(func() *regexp.Regexp {
			return regexp.MustCompile("^(?:" + columns[3] + ")$")
		})}
		if columns[1] != "" {
			p.prefixes = strings.Split(columns[1], ",")
			sorting.Func(p.prefixes, func(a, b string) int { return len(b) - len(a) })
		}
		for n := range strings.SplitSeq(columns[2], ",") {
			length, _ := strconv.Atoi(n)
			p.lengths |= 1 << length
		}
		all[columns[0]] = p
	}
	return all
})

// Split divides the digits of an international number into the dialling code and the number. The plan is nil, and the
// dialling code is "", if no country has the code.
func Split(digits string) (dial, number string, p *Plan) {
	for n := 1; n <= min(maxDialDigits, len(digits)); n++ {
		if p = plans()[digits[:n]]; p != nil {
			return digits[:n], digits[n:], p
		}
	}
	return "", digits, nil
}

// Possible reports whether numbers of that length exist.
func (p *Plan) Possible(number string) bool {
	return len(number) < 32 && p.lengths&(1<<len(number)) != 0
}

// Assigned reports whether a number is in a range that the country uses.
func (p *Plan) Assigned(number string) bool {
	return p.Possible(number) && p.pattern().MatchString(number)
}

// National returns the number that a national caller writes as digits: without the prefix of the country, if the digits
// begin with it and are no number themselves. It reports false if no number has that length.
func (p *Plan) National(digits string) (number string, ok bool) {
	if strings.HasPrefix(digits, "00") && !p.Assigned(digits) { // of another country
		return "", false
	}
	read := ""
	for _, prefix := range p.prefixes {
		rest, has := strings.CutPrefix(digits, prefix)
		if has && read == "" && p.Assigned(digits) {
			break
		}
		if has && p.Possible(rest) && (read == "" || !p.Assigned(read) && p.Assigned(rest)) {
			read = rest
		}
	}
	if read != "" {
		return read, true
	}
	return digits, p.Possible(digits)
}

// Restore returns the number that a program stored in another form, because it dropped one leading 0 of every number
// and no other prefix. It reports false for a number in use, and for one that has no reading or several.
func (p *Plan) Restore(stored string) (number string, ok bool) {
	if p.Assigned(stored) {
		return stored, false
	}
	for _, written := range []string{"0" + stored, stored} {
		read, possible := p.National(written)
		if !possible || read == stored || !p.Assigned(read) || read == number {
			continue
		}
		if number != "" {
			return stored, false
		}
		number = read
	}
	if number == "" {
		return stored, false
	}
	return number, true
}

// Ambiguous reports whether a stored number is in use both as it is and with a leading 0, which a program may have
// dropped.
func (p *Plan) Ambiguous(stored string) bool {
	read, ok := p.National("0" + stored)
	return ok && read == "0"+stored && p.Assigned(stored)
}
