package password

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"castellan/domain/account/password/legacy"
)

// Kind is what the time of a login reveals about a stored hash: how it is computed.
type Kind struct {
	Inner legacy.Recipe // of another service; zero: none
	Outer Params        // of argon2id, over the password or over the inner hash; zero: none
}

// String returns the text that KindOf counts by: the recipe, a plus sign and the parameters, as in
// "md5crypt$i=1000+m=19456,t=2,p=1".
func (k Kind) String() string {
	inner, outer := "", ""
	if k.Inner != (legacy.Recipe{}) {
		inner = k.Inner.String()
	}
	if k.Outer != (Params{}) {
		outer = fmt.Sprintf("m=%d,t=%d,p=%d", k.Outer.MemoryKiB, k.Outer.Passes, k.Outer.Lanes)
	}
	return inner + "+" + outer
}

// ParseKind reads the text of Kind.String.
//
// Errors: internal, for any other text.
func ParseKind(text string) (k Kind, err error) {
	inner, outer, _ := strings.Cut(text, "+")
	if inner != "" {
		if k.Inner, err = legacy.ParseRecipe(inner); err != nil {
			return Kind{}, fmt.Errorf("kind of a hash: %w", err)
		}
	}
	if outer != "" {
		_, err = fmt.Sscanf(outer, "m=%d,t=%d,p=%d", &k.Outer.MemoryKiB, &k.Outer.Passes, &k.Outer.Lanes)
		err = errors.Join(err, k.Outer.Validate())
	}
	if err != nil || k.String() != text || text == "+" {
		return Kind{}, errors.New("kind of a hash: is malformed")
	}
	return k, nil
}

// KindOf returns the kind of a stored hash.
//
// Errors: internal, for a malformed one.
func KindOf(text string) (Kind, error) {
	if !Imported(text) {
		s, err := parse(text)
		return Kind{Outer: s.params}, err
	}
	i, err := parseImported(text)
	return i.kind(), err
}

func (i imported) kind() Kind { return Kind{i.inner.Recipe, i.outer.params} }

// Work is the cost of a hash of this kind in work units (legacy.Recipe.Work).
func (k Kind) Work() (units uint64) {
	if k.Inner != (legacy.Recipe{}) {
		units += k.Inner.Work()
	}
	if k.Outer != (Params{}) {
		units += recipeOf(k.Outer).Work()
	}
	return units
}

// Check returns an error for a kind that costs more than a hash of a file may.
//
// Errors: legacy.ErrCost.
func (k Kind) Check() (err error) {
	if k.Inner != (legacy.Recipe{}) {
		err = k.Inner.Check()
	}
	if k.Outer != (Params{}) {
		err = errors.Join(err, recipeOf(k.Outer).Check())
	}
	return err
}

func recipeOf(p Params) legacy.Recipe {
	return legacy.Recipe{Alg: legacy.Argon2id, Cost: p.Passes, Memory: p.MemoryKiB, Lanes: uint32(p.Lanes)}
}

// decoy returns a stored hash of the kind that no password has.
func (k Kind) decoy() string {
	outer := stored{params: k.Outer, salt: random(saltBytes), tag: random(tagBytes)}
	if k.Inner == (legacy.Recipe{}) {
		return outer.String()
	}
	i := imported{inner: k.Inner.Decoy(), outer: outer, wrapped: k.Outer != (Params{})}
	if i.wrapped {
		i.inner = i.inner.Inner()
	}
	return i.String()
}

// Portion is a kind and the number of accounts that have it.
type Portion struct {
	Kind
	Accounts int64
	// Peak is the number of accounts that ever had it, at least Accounts.
	Peak int64
}

// maxKinds bounds the kinds of a mix. A file may have thousands; identifiers without an account imitate the most
// frequent ones.
const maxKinds = 256

// mix chooses the kind of hash that an identifier without an account imitates.
type mix struct {
	seed  []byte
	kinds []choice
}

// choice is a kind with its share. Identifiers that chose it imitate it if their second draw is below left, and
// otherwise the present parameters, as accounts do after a login.
type choice struct {
	salt         uint64 // of the draw
	weight, left float64
	decoy        string
}

// SetKinds declares the kinds of hashes that accounts have, most frequent first, and the secret by which identifiers
// without an account choose among them. Nodes with the same arguments choose alike.
func (h *Hasher) SetKinds(seed []byte, kinds []Portion) {
	home, total, others := Kind{Outer: h.params}, int64(0), int64(0)
	m := &mix{seed: seed, kinds: []choice{{salt: saltOf(home), left: 1, decoy: h.dummy}}}
	for _, k := range kinds[:min(len(kinds), maxKinds)] {
		total += k.Accounts
		if k.Kind == home || k.Peak <= 0 {
			continue
		}
		others += k.Peak
		m.kinds = append(m.kinds, choice{saltOf(k.Kind), float64(k.Peak), float64(k.Accounts) / float64(k.Peak), k.decoy()})
	}
	m.kinds[0].weight = float64(max(0, total-others))
	if len(m.kinds) == 1 {
		m = nil
	}
	h.mix.Store(m)
}

// VerifyLogin is Verify for a login by an identifier. An empty phc is that of an identifier without an account. The
// identifier then chooses the kind of hash whose work is done, in the proportions in which accounts have the kinds, and
// always the same one (D-AUTH-19). So the time names a kind and never an account.
func (p *Place) VerifyLogin(ctx context.Context, identifier, password, phc string) (right, stale bool, err error) {
	decoy := p.h.decoy(identifier) // for every identifier, because it takes time
	if phc == "" {
		_, _, err = p.verify(ctx, password, decoy)
		return false, false, err
	}
	return p.verify(ctx, password, phc)
}

// decoy returns the hash that a login by an identifier without an account verifies.
//
// The draws are a weighted rendezvous: identifiers leave a kind only for that of the present parameters while accounts
// log in, and join another one only when accounts are imported. Real accounts do the same.
func (h *Hasher) decoy(identifier string) string {
	m := h.mix.Load()
	if m == nil {
		return h.dummy
	}
	in := append(append(make([]byte, 0, 128), m.seed...), identifier...)
	sum := sha256.Sum256(in)
	draw, again := binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])
	best, least := 0, math.Inf(1)
	for i, c := range m.kinds {
		// The smallest of -ln(u)/weight belongs to a kind with the probability of its weight.
		if at := -math.Log(unit(mixed(draw^c.salt))) / c.weight; at < least {
			best, least = i, at
		}
	}
	if c := m.kinds[best]; unit(again) < c.left {
		return c.decoy
	}
	return h.dummy
}

func saltOf(k Kind) uint64 {
	f := fnv.New64a()
	f.Write([]byte(k.String())) // never fails
	return f.Sum64()
}

// unit maps 64 bits to a number between 0 and 1, both excluded.
func unit(bits uint64) float64 { return (float64(bits>>11) + 0.5) / (1 << 53) }

// mixed spreads 64 bits: the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Work is the work of all verified and made hashes of passwords so far, in work units.
func (h *Hasher) Work() uint64 { return h.work.Load() }
