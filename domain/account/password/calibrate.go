package password

import (
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/account/password/argon2id"
)

// Candidate is a set of parameters that an operator may choose.
type Candidate struct {
	Name string // of the published set; "" for a stronger form of one
	Params
}

// Candidates returns the sets of OWASP's Password Storage Cheat Sheet and of RFC 9106, and then stronger forms of
// them. None is weaker than the published sets.
func Candidates() []Candidate {
	all := []Candidate{
		{"OWASP 1", Params{47104, 1, 1}}, {"OWASP 2", Params{19456, 2, 1}}, {"OWASP 3", Params{12288, 3, 1}},
		{"OWASP 4", Params{9216, 4, 1}}, {"OWASP 5", Params{7168, 5, 1}},
		{"RFC 9106, 1st", Params{2 << 20, 1, 4}}, {"RFC 9106, 2nd", Params{64 << 10, 3, 4}},
	}
	for _, of := range []struct{ kib, from, to uint32 }{{19456, 3, 8}, {47104, 2, 5}, {64 << 10, 1, 6},
		{128 << 10, 1, 4}} {
		for passes := of.from; passes <= of.to; passes++ {
			all = append(all, Candidate{"", Params{of.kib, passes, 1}})
		}
	}
	return all
}

// Traffic returns the bytes that a guess reads from memory and writes to it, caches apart. The first pass reads one
// block and writes one for each block; a later pass reads the old content too. Graphics cards reach about as many
// guesses a second as their memory allows by this number.
func (p Params) Traffic() float64 {
	return float64(argon2id.Params(p).Size()) * float64(2+3*(p.Passes-1))
}

// MemoryBytes returns the memory of a hash.
func (p Params) MemoryBytes() int { return argon2id.Params(p).Size() }

// Measure returns the median time of a hash while that many run at once, and takes at least span. It ends early with
// ctx.
func Measure(ctx context.Context, p Params, slots int, span time.Duration) (time.Duration, error) {
	took := make([][]time.Duration, slots)
	var all sync.WaitGroup
	for i := range took {
		all.Go(func() {
			var m argon2id.Memory
			defer m.Free()
			secret, salt := random(tagBytes), random(saltBytes)
			derive(&m, secret, salt, p, tagBytes) // maps the memory
			for began := time.Now(); ctx.Err() == nil && (len(took[i]) < 3 || time.Since(began) < span); {
				from := time.Now()
				derive(&m, secret, salt, p, tagBytes)
				took[i] = append(took[i], time.Since(from))
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	hashes := slices.Sorted(slices.Values(slices.Concat(took...)))
	return hashes[len(hashes)/2], nil
}

// RestOfLogin is the processor time of a login beside its hash, at most.
const RestOfLogin = 500 * time.Microsecond

// Served returns how many logins a second a machine serves whose hash takes that long in so many slots: the slots hash,
// and the processors do all of the work.
func Served(hash time.Duration, slots, processors int) float64 {
	return min(float64(slots)/hash.Seconds(), float64(processors)/(hash+RestOfLogin).Seconds())
}
