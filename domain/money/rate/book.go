package rate

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// Pair is the pair of a rate: the price of one unit of Base in Quote. Both are codes in upper case.
type Pair struct{ Base, Quote string }

func (p Pair) turned() Pair { return Pair{p.Quote, p.Base} }

// Quote is the rate of a pair at an instant.
type Quote struct {
	Pair
	Rate Rate
	At   time.Time // in milliseconds
}

var code = regexp.MustCompile(`^[A-Z0-9._-]{1,32}$`)

// Code returns the code of a currency in the form of stored rates. ok is false if the text cannot be a code.
func Code(text string) (_ string, ok bool) {
	text = strings.ToUpper(strings.TrimSpace(text))
	return text, code.MatchString(text)
}

// over is the intermediate currency for a rate that is stored in neither direction (D-CUR-07).
const over = "USD"

// Needed returns the pairs whose last rates determine the rate of p.
func Needed(p Pair) []Pair {
	all := []Pair{p, p.turned()}
	if p.Base != over && p.Quote != over {
		in, out := Pair{p.Base, over}, Pair{over, p.Quote}
		all = append(all, in, in.turned(), out, out.turned())
	}
	return all
}

// Into returns the last rates at an instant that determine those of some currencies in another one (Find).
func Into(ctx context.Context, s Store, quote string, at time.Time, codes ...string) ([]Quote, error) {
	var pairs []Pair
	for _, text := range codes {
		if c, ok := Code(text); ok && c != quote {
			pairs = append(pairs, Needed(Pair{c, quote})...)
		}
	}
	if len(pairs) == 0 { // without pairs the store would list all rates
		return nil, nil
	}
	return s.Last(ctx, at, pairs...)
}

// Find returns the rate of p from the last rates of its needed pairs (D-CUR-07). It tries, in this order, the rate of
// the pair, the inverse of the reverse pair, and the rate via USD. A computed rate has 18 significant digits.
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

// one is the rate of a currency to itself.
var one = Must("1")
