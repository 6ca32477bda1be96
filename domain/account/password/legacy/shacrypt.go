package legacy

import (
	"bytes"
	"hash"
	"strings"
)

const (
	maxSHASalt = 16
	// defaultRounds are those of a text that names none.
	defaultRounds = 5000
)

// shacrypt is crypt(3) with $5$ and $6$, of Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512".
func shacrypt(newHash func() hash.Hash, password, salt []byte, rounds uint32) []byte {
	inner := sum(newHash, password, salt, password)
	parts := [][]byte{password, salt, stretched(inner, len(password))}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			parts = append(parts, inner)
		} else {
			parts = append(parts, password)
		}
	}
	state := sum(newHash, parts...)
	p := stretched(sum(newHash, bytes.Repeat(password, len(password))), len(password))
	s := stretched(sum(newHash, bytes.Repeat(salt, 16+int(state[0]))), len(salt))
	defer clear(p)
	return iterated(newHash, state, p, s, rounds)
}

// shaOrder is the order in which crypt(3) writes the bytes of a tag, by function.
var shaOrder = map[string][]int{"sha256": shaOrderOf(32), "sha512": shaOrderOf(64)}

func shaOrderOf(n int) (order []int) {
	third := n / 3
	for a, b, c := 0, third, 2*third; len(order)+3 <= n; {
		order = append(order, c, b, a)
		if n == 64 {
			a, b, c = b+1, c+1, a+1
		} else {
			a, b, c = c+1, a+1, b+1
		}
	}
	if n == 64 {
		return append(order, 63)
	}
	return append(order, 30, 31)
}

// shacryptText reads "5" or "6", optional rounds, up to 16 characters of salt, and the tag.
func shacryptText(parts []string) (h Hash, err error) {
	h.Recipe = Recipe{Alg: SHACrypt, Function: map[string]string{"5": "sha256", "6": "sha512"}[parts[0]],
		Cost: defaultRounds}
	rest := parts[1:]
	if len(rest) == 3 {
		rounds, named := strings.CutPrefix(rest[0], "rounds=")
		if !named {
			return h, ErrMalformed
		}
		if h.Cost, err = number(rounds); err != nil {
			return h, err
		}
		rest = rest[1:]
	}
	if len(rest) != 2 {
		return h, ErrMalformed
	}
	order := shaOrder[h.Function]
	mixed, ok := crypt64(rest[1], len(order))
	if !ok {
		return h, ErrMalformed
	}
	h.Salt, h.Tag = []byte(rest[0]), make([]byte, len(order))
	for i, at := range order {
		h.Tag[at] = mixed[i]
	}
	return h, nil
}
