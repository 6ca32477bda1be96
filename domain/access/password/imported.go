package password

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"castellan/domain/access/password/legacy"
)

// importedPrefix begins a stored hash of another service: "$imported$" and the text of legacy.Hash. A wrapped hash has
// the size of the inner tag in place of the tag, and a PHC string over the inner tag behind it (D-AUTH-19).
const importedPrefix = "$imported$"

// Imported reports whether a stored hash is of another service.
func Imported(stored string) bool { return strings.HasPrefix(stored, importedPrefix) }

// imported is a stored hash of another service.
type imported struct {
	inner   legacy.Hash
	outer   stored // of the inner tag, where wrapped
	wrapped bool
}

func (i imported) String() string {
	text := importedPrefix + i.inner.String()
	if i.wrapped {
		text += i.outer.String()
	}
	return text
}

// parseImported reads a stored hash of another service.
func parseImported(text string) (i imported, err error) {
	rest, ok := strings.CutPrefix(text, importedPrefix)
	if !ok {
		return i, errMalformed
	}
	inner, outer := rest, ""
	if at := strings.Index(rest, "$argon2id$v="); at >= 0 {
		inner, outer, i.wrapped = rest[:at], rest[at:], true
		if i.outer, err = parse(outer); err != nil {
			return i, errMalformed
		}
	}
	if i.inner, err = legacy.Parse(inner); err != nil || (len(i.inner.Tag) == 0) != i.wrapped || i.String() != text {
		return i, errMalformed
	}
	return i, nil
}

// Recipes returns how a stored hash of another service is computed: its own recipe, and that of its wrapping, unless
// this Hasher wraps alike.
//
// Errors: internal, for any other text.
func (h *Hasher) Recipes(stored string) ([]legacy.Recipe, error) {
	i, err := parseImported(stored)
	if err != nil || !i.wrapped || i.outer.params == h.params {
		return []legacy.Recipe{i.inner.Recipe}, err
	}
	return []legacy.Recipe{i.inner.Recipe, recipeOf(i.outer.params)}, nil
}

func recipeOf(p Params) legacy.Recipe {
	return legacy.Recipe{Alg: legacy.Argon2id, Cost: p.Passes, Memory: p.MemoryKiB, Lanes: uint32(p.Lanes)}
}

// Affordable reports whether a wrapped hash of a file costs no more than another hash of a file may.
//
// Errors: legacy.ErrCost; internal, for a text that no Hasher stored.
func Affordable(stored string) error {
	i, err := parseImported(stored)
	if err != nil || !i.wrapped {
		return err
	}
	return recipeOf(i.outer.params).Check()
}

// Adopt returns the form in which the hash of another service is stored. A weak one is wrapped: the stored hash is
// argon2id of the old hash, which itself is not stored. A hash like those of this Hasher is stored as one of them.
//
// Errors: OVERLOADED, the error of ctx.
func (h *Hasher) Adopt(ctx context.Context, f legacy.Hash) (string, error) {
	ours := h.params
	if f.Alg == legacy.Argon2id && f.Cost == ours.Passes && f.Memory == ours.MemoryKiB && f.Lanes == uint32(ours.Lanes) {
		return stored{params: ours, salt: f.Salt, tag: f.Tag}.String(), nil
	}
	i := imported{inner: f}
	if f.Strong() {
		return i.String(), nil
	}
	p, err := h.Admit(own)
	if err != nil {
		return "", err
	}
	defer p.Leave()
	return p.wrap(ctx, i)
}

// AdoptStored is Adopt for a text that this Hasher, or one of another installation, stored.
//
// Errors: internal, for any other text; those of Adopt.
func (h *Hasher) AdoptStored(ctx context.Context, text string) (string, error) {
	i, err := parseImported(text)
	if err != nil || i.wrapped {
		return text, err
	}
	return h.Adopt(ctx, i.inner)
}

// Wrap returns a stored hash in the form that may be kept for long: one of another service is wrapped in argon2id, and
// any other is returned unchanged.
//
// Errors: OVERLOADED, the error of ctx, and an internal one for a malformed hash.
func (p *Place) Wrap(ctx context.Context, text string) (string, error) {
	if !Imported(text) {
		return text, nil
	}
	i, err := parseImported(text)
	if err != nil || i.wrapped {
		return text, err
	}
	return p.wrap(ctx, i)
}

func (p *Place) wrap(ctx context.Context, i imported) (string, error) {
	i.outer, i.wrapped = stored{params: p.h.params, salt: random(saltBytes)}, true
	a, err := p.h.acquire(ctx, p)
	if err != nil {
		return "", err
	}
	defer p.h.done(a)
	i.outer.tag = a.derive(i.inner.Tag, i.outer.salt, nil, nil, i.outer.params, tagBytes)
	i.inner = i.inner.Inner()
	return i.String(), nil
}

// verifyImported is Verify for a hash of another service. The other service hashed the password as it was typed, so it
// is not normalised.
func (p *Place) verifyImported(ctx context.Context, password, text string) (right bool, err error) {
	want, err := parseImported(text)
	if err != nil {
		return false, err
	}
	typed := []byte(password)
	defer clear(typed)
	a, err := p.h.acquire(ctx, p)
	if err != nil {
		return false, err
	}
	defer p.h.done(a)
	began := p.h.began()
	defer p.spend(began)
	got, err := want.inner.Derive(typed, a.foreign)
	if err != nil {
		return false, err
	}
	tag := want.inner.Tag
	if want.wrapped {
		o := want.outer
		got, tag = a.derive(got, o.salt, nil, nil, o.params, uint32(len(o.tag))), o.tag
	}
	_, valid := Normalize(password)
	right = subtle.ConstantTimeCompare(got, tag) == 1 && want.inner.Fits(password) && valid
	return right, nil
}

// foreign is legacy.Argon over this memory.
func (a *arena) foreign(password, salt []byte, kib, passes uint32, lanes uint8, independent bool, n uint32) []byte {
	mode := uint32(modeID)
	if independent {
		mode = modeI
	}
	return a.deriveAs(mode, password, salt, nil, nil, Params{MemoryKiB: kib, Passes: passes, Lanes: lanes}, n)
}

// level is the time that every login takes while accounts have hashes of other services.
type level struct {
	recipes []legacy.Recipe

	mu   sync.Mutex
	step time.Duration // 0: not measured yet
}

// SetImported declares the recipes of other services that accounts have; none: only hashes of this service. While there
// are some, Place.Even hides which account has which.
func (h *Hasher) SetImported(recipes []legacy.Recipe) {
	var costliest legacy.Costliest
	costliest.Add(recipes...)
	recipes = costliest.List()
	old := h.level.Load()
	switch {
	case len(recipes) == 0:
		h.level.Store(nil)
	case old == nil || !slices.Equal(old.recipes, recipes):
		h.level.Store(&level{recipes: recipes})
	}
}

// HasImported reports whether accounts have hashes of other services, by the last SetImported.
func (h *Hasher) HasImported() bool { return h.level.Load() != nil }

// began returns the time at which a hash begins; zero if no account has a hash of another service.
func (h *Hasher) began() (t time.Time) {
	if h.level.Load() != nil {
		t = time.Now()
	}
	return t
}

func (p *Place) spend(began time.Time) {
	if !began.IsZero() {
		p.spent += time.Since(began)
	}
}

// Even waits until the hashes of this place have taken as long as those of an account with the slowest hash. A place
// that took longer waits for the next multiple. It returns at once if no account has a hash of another service. Call it
// after Leave, so that the wait holds neither a place nor a slot.
//
// Errors: OVERLOADED, the error of ctx.
func (p *Place) Even(ctx context.Context) error {
	l := p.h.level.Load()
	if l == nil {
		return nil
	}
	step, err := l.measured(ctx, p.h)
	if err != nil {
		return err
	}
	rest := step - p.spent%step
	if p.spent > 0 && rest == step {
		return nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sizeMeasured is the length of a measured tag in bytes, at most one block of each function.
const sizeMeasured = 16

// spare is the part of the measured time that is added to it, because a hash of a busy machine takes longer.
const spare = 4

// measured returns the step. The first caller measures it: each recipe once, and the two hashes of this service that
// verify a wrapped hash and replace it.
func (l *level) measured(ctx context.Context, h *Hasher) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step > 0 {
		return l.step, nil
	}
	a, err := h.acquire(ctx, &Place{h: h, who: own})
	if err != nil {
		return 0, err
	}
	defer h.done(a)
	timed := func(run func()) time.Duration {
		began := time.Now()
		run()
		return time.Since(began)
	}
	secret, salt := random(legacy.MaxPassword), random(saltBytes) // the longest, which some functions read each round
	native := func() { a.derive(secret, salt, nil, nil, h.params, tagBytes) }
	native() // the memory is mapped now
	slowest := time.Duration(0)
	for _, r := range l.recipes {
		if r == recipeOf(h.params) { // the wrapping by this Hasher, which total has
			continue
		}
		f := legacy.Hash{Recipe: r, Salt: salt, Size: sizeMeasured}
		slowest = max(slowest, timed(func() { _, err = f.Derive(secret, a.foreign) }))
		if err != nil {
			return 0, errors.Join(errMalformed, err)
		}
	}
	total := slowest + 2*timed(native)
	l.step = max(total+total/spare, time.Millisecond)
	return l.step, nil
}
