package password

import (
	"context"
	"crypto/subtle"
	"strings"

	"castellan/domain/account/password/argon2id"
	"castellan/domain/account/password/legacy"
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
	p.h.work.Add(recipeOf(i.outer.params).Work())
	i.outer.tag = derive(a, i.inner.Tag, i.outer.salt, i.outer.params, tagBytes)
	i.inner = i.inner.Inner()
	return i.String(), nil
}

// verifyImported is Verify for a hash of another service, which hashed the password as a client sent it. A keyboard may
// compose its letters in another way today, so the password is tried as typed and in NFC.
func (p *Place) verifyImported(ctx context.Context, password, text string) (right bool, err error) {
	want, err := parseImported(text)
	if err != nil {
		return false, err
	}
	normal, valid := Normalize(password)
	a, err := p.h.acquire(ctx, p)
	if err != nil {
		return false, err
	}
	defer p.h.done(a)
	if right, err = want.derives(a, password); err != nil {
		return false, err
	}
	p.h.work.Add(want.kind().Work())
	if valid && normal != password { // also after a right one, so that both take the same time
		composed, err := want.derives(a, normal)
		if err != nil {
			return false, err
		}
		p.h.work.Add(want.kind().Work())
		right = right || composed
	}
	return right && valid, nil
}

// derives reports whether a password has the hash, exactly as it is spelled.
func (i imported) derives(a *argon2id.Memory, password string) (bool, error) {
	typed := []byte(password)
	defer clear(typed)
	got, err := i.inner.Derive(typed, argonOver(a))
	if err != nil {
		return false, err
	}
	tag := i.inner.Tag
	if i.wrapped {
		got, tag = derive(a, got, i.outer.salt, i.outer.params, uint32(len(i.outer.tag))), i.outer.tag
	}
	return subtle.ConstantTimeCompare(got, tag) == 1 && i.inner.Fits(password), nil
}

// argonOver is legacy.Argon over a memory.
func argonOver(a *argon2id.Memory) legacy.Argon {
	return func(password, salt []byte, kib, passes uint32, lanes uint8, independent bool, n uint32) []byte {
		p := Params{MemoryKiB: kib, Passes: passes, Lanes: lanes}
		if independent {
			return a.DeriveI(password, salt, argon2id.Params(p), n)
		}
		return derive(a, password, salt, p, n)
	}
}
