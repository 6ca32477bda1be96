package rate

import (
	"regexp"
	"strings"
	"time"
)

// Pair names what a rate is of: one unit of Base costs that much of Quote. Both
// are codes in upper case.
type Pair struct{ Base, Quote string }

func (p Pair) turned() Pair { return Pair{p.Quote, p.Base} }

// Quote is a rate of a pair at an instant.
type Quote struct {
	Pair
	Rate Rate
	At   time.Time // in milliseconds
}

var code = regexp.MustCompile(`^[A-Z0-9._-]{1,32}$`)

// Code is the code of a currency as rates are stored under it. ok reports whether
// the text can be one.
func Code(text string) (_ string, ok bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	return text, code.MatchString(text)
}

// over is the currency by which a rate is found that is stored in neither
// direction (D-CUR-07).
const over = "USD"

// Needed are the pairs whose last rates decide the rate of p.
func Needed(p Pair) []Pair {
	all := []Pair{p, p.turned()}
	if p.Base != over && p.Quote != over {
		in, out := Pair{p.Base, over}, Pair{over, p.Quote}
		all = append(all, in, in.turned(), out, out.turned())
	}
	return all
}

// Find returns the rate of p by the last rates of the pairs that it needs: the
// rate of the pair, that of the turned pair, or the rate over USD, in this order
// (D-CUR-07). A rate that is computed has 18 significant digits.
func Find(p Pair, last []Quote) (_ Rate, ok bool) {
	known := map[Pair]Rate{}
	for _, q := range last {
		known[q.Pair] = q.Rate
	}
	if r, ok := known[p]; ok {
		return r, true
	}
	if r, ok := known[p.turned()]; ok {
		return Rate{quotient(one.d, r.d)}, true
	}
	above, below := one.d, one.d
	for _, leg := range []Pair{{p.Base, over}, {over, p.Quote}} {
		if r, ok := known[leg]; ok {
			above = above.Mul(r.d)
		} else if r, ok := known[leg.turned()]; ok {
			below = below.Mul(r.d)
		} else {
			return Rate{}, false
		}
	}
	return Rate{quotient(above, below)}, true
}

// one is the rate of a currency in itself.
var one = Must("1")
