package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

// decoy compares the times of known and unknown phones at the reset of a password (D-PWD-01): alternating, on one
// connection, with no other client. Tests show that everything else visible outside is equal; time can only be
// measured.
func decoy(b *bench) {
	each := b.many(2000, 500, 20)
	b.report.begin("Known and unknown phones at the reset, %d of each, %d runs in turns", each, decoyRuns)
	b.onEach(cheap(), 0, func(p *place, s *server) { b.decoyOn(p, s, each) })
}

const (
	// decoyRuns is odd: the median of the runs keeps the promise exactly when most runs do.
	decoyRuns = 3
	// The permitted difference between the medians of a run: a part of the known one's, and no less than the noise of
	// scheduling.
	decoyPart    = 0.05
	decoyLeastUs = 30
)

// decoySteps are the possible steps of an outsider with a phone, in this order.
var decoySteps = []struct {
	name string
	want int // the status
	do   func(v *visitor, phone, method string) (int, error)
}{
	{"reset", 200, func(v *visitor, phone, _ string) (int, error) {
		return v.do("POST", "/auth/password/reset", "", `{"countryCode":"90","phoneNumber":"`+phone+`"}`)
	}},
	{"wrong value", 422, func(v *visitor, _, method string) (int, error) {
		return v.do("POST", completePath, "p-auth: "+v.pAuth, answerBody(method, "000000"))
	}},
	{"renewal too early", 429, func(v *visitor, _, method string) (int, error) {
		return v.do("POST", "/auth/2fa/challenge/renew", "p-auth: "+v.pAuth, `{"methodId":"`+method+`","method":"SMS"}`)
	}},
	{"result", 409, func(v *visitor, _, _ string) (int, error) {
		return v.do("GET", "/auth/2fa/challenge/result", "p-auth: "+v.pAuth, "")
	}},
}

func (b *bench) decoyOn(p *place, s *server, each int) {
	s.codes.forget()
	of := series{}
	for range decoyRuns {
		b.await()
		decoyRun(s, each, of)
	}
	r := &b.report
	for _, step := range decoySteps {
		r.line(p.name+": "+step.name+", known", "µs", of[step.name+" known"], bar{})
		r.line(p.name+": "+step.name+", unknown", "µs", of[step.name+" unknown"], bar{})
		r.line(p.name+": … apart, in parts of max(5 %, 30 µs)", "×", of[step.name], atMost(1))
	}
}

// decoyRun takes every step with all phones, alternating the two kinds.
func decoyRun(s *server, each int, of series) {
	v := need(newVisitor(s))
	defer v.Close()
	var took [2][4][]float64 // known and unknown, by step, in µs
	for i := range each {
		first := rand.IntN(2)
		var waits, shapes [2][4]string
		for _, kind := range [...]int{first, 1 - first} {
			v.stranger(phone(i+kind*people), &took[kind], &waits[kind], &shapes[kind])
		}
		if shapes[0] != shapes[1] {
			must(fmt.Errorf("answers differ: %q for a known phone, %q for an unknown one", shapes[0], shapes[1]))
		}
		for i := range decoySteps {
			if !alike(waits[0][i], waits[1][i]) {
				must(fmt.Errorf("Retry-After differs: %q for a known phone, %q for an unknown one", waits[0], waits[1]))
			}
		}
	}
	for i, step := range decoySteps {
		known, unknown := median(took[0][i][each/20:]), median(took[1][i][each/20:]) // without the warm-up
		of.add(step.name+" known", known)
		of.add(step.name+" unknown", unknown)
		of.add(step.name, math.Abs(known-unknown)/max(decoyPart*known, decoyLeastUs))
	}
}

// alike compares two values of Retry-After. The requests of the two phones may be a second apart.
func alike(a, b string) bool {
	x, errA := strconv.Atoi(a)
	y, errB := strconv.Atoi(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return max(x-y, y-x) <= 1
}

// stranger takes every step with a phone, and returns the time of each, its Retry-After and the shape of its answer.
func (v *visitor) stranger(phone string, took *[4][]float64, waits, shapes *[4]string) {
	method, token := "", ""
	for i, step := range decoySteps {
		v.pAuth = token // an answer without a token removes it
		began := time.Now()
		status, err := step.do(v, phone, method)
		must(within(step.name, err))
		took[i] = append(took[i], time.Since(began).Seconds()*1e6)
		if status != step.want {
			must(within(step.name, v.refusal(status)))
		}
		if i == 0 {
			method, token = member(v.body, "id"), v.pAuth
		}
		waits[i] = v.retryAfter
		shapes[i] = fmt.Sprint(status, " ", value.ReplaceAllString(string(v.body), ":…"))
	}
}

// value is a value of a JSON member; what remains are the names and their order.
var value = regexp.MustCompile(`:("[^"]*"|[0-9]+)`)
