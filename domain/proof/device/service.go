package device

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/jose"
	"castellan/domain/kit/keyring"
)

// Service verifies proofs, and adds and removes devices. All fields except Loopback and Passkeys are required.
type Service struct {
	Store    Store
	Passkeys *Passkeys // nil: no passkeys
	Users    user.Store
	Commit   commit.Committer
	Ring     *keyring.Ring
	Notices  challenge.Notices
	Audience string // the public base URL
	Loopback bool   // push targets may be http URLs of this machine: development mode
	Now      func() time.Time
	Log      *slog.Logger
}

// Request is a request that a device has signed, as received.
type Request struct {
	Proof    string // "" for none
	Method   string
	Target   string // path with the raw query
	HasBody  bool
	BodyHash [32]byte // SHA-256 of the body
}

// Answer is an answer to a challenge that a device has signed.
type Answer struct {
	DeviceID    string // as in the body
	ChallengeID string
	MethodID    string
	Value       string
	// Decides is false for a value that is no decision, such as a code. The proof need not repeat it, because the
	// hash of the body covers it.
	Decides bool
}

// Required returns the refusal of a request without a proof.
func Required() error {
	return fault.New(fault.DeviceSignatureRequired, "a device signature is required")
}

// Refused returns the refusal of a proof, whatever its fault is.
func Refused() error {
	return fault.New(fault.DeviceSignatureInvalid, "the device signature is not valid")
}

// Present returns the device that a request comes from. The proof must be fresh and is used up, durably, before
// Present returns.
//
// Errors: DEVICE_SIGNATURE_REQUIRED; DEVICE_SIGNATURE_INVALID, with a nonce if the age is the proof's only fault;
// UNAVAILABLE.
func (s *Service) Present(ctx context.Context, r Request) (Device, error) {
	if r.Proof == "" {
		return Device{}, Required()
	}
	d, c, err := s.registered(ctx, r)
	if err != nil {
		return Device{}, err
	}
	return d, s.spend(ctx, d.ID, c, Use{UserID: d.UserID, ID: d.ID, At: s.Now()})
}

// Answered returns the device that signed an answer to a method of a challenge, and the claims of the proof. Challenge
// and method are the nonce of such a proof, so its age is not checked. The caller must check whether the device belongs
// to the challenge's user, and whether the claim int is the digest of its intent. Nothing is used up. Errors are those
// of Present, without a nonce.
func (s *Service) Answered(ctx context.Context, r Request, a Answer) (Device, Claims, error) {
	if r.Proof == "" {
		return Device{}, Claims{}, Required()
	}
	d, c, err := s.registered(ctx, r)
	if err != nil {
		return Device{}, Claims{}, err
	}
	same := equal(a.DeviceID, d.ID) & equal(a.ChallengeID, c.Challenge) & equal(a.MethodID, c.MethodID)
	if a.Decides || c.Value != "" {
		same &= equal(a.Value, c.Value)
	}
	if same != 1 {
		return Device{}, Claims{}, Refused()
	}
	s.Log.InfoContext(ctx, "device signed an answer", "device", d.ID, "challenge", a.ChallengeID, "iat", c.IssuedAt)
	return d, c, nil
}

// Enrolling checks that the caller of a request holds the private key of a key without a device. Errors are those of
// Present.
func (s *Service) Enrolling(ctx context.Context, r Request, userID string, k Key) error {
	if r.Proof == "" {
		return Required()
	}
	p, ok := parse(r.Proof)
	if !ok || !p.By(k.Key) || s.matches(r, p.claims)&equal(p.kid, k.Thumbprint()) != 1 {
		return Refused()
	}
	return s.spend(ctx, "new/"+userID+"/"+p.kid, p.claims)
}

// registered verifies the proof of a device except for its age. A device that does not exist costs the same.
func (s *Service) registered(ctx context.Context, r Request) (Device, Claims, error) {
	p, ok := parse(r.Proof)
	if !ok {
		return Device{}, Claims{}, Refused()
	}
	d, err := s.Store.Get(ctx, p.kid)
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return Device{}, Claims{}, err
	}
	key, known := d.Key, err == nil && d.Status == Active
	if !known {
		key = strangers[p.Alg]
	}
	right := p.By(key.Key)
	if s.matches(r, p.claims) != 1 || !right || !known {
		return Device{}, Claims{}, Refused()
	}
	return d, p.claims, nil
}

// matches compares the claims about the request with the request; 1 if all are equal.
func (s *Service) matches(r Request, c Claims) int {
	body := ""
	if r.HasBody || c.BodyHash != "" { // without a body, only an absent hash is right
		body = jose.Encode(r.BodyHash[:])
	}
	return equal(c.Audience, s.Audience) & equal(c.Method, r.Method) & equal(c.Target, r.Target) & equal(c.BodyHash, body)
}

func equal(a, b string) int { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) }

// spend checks the age of a subject's proof and uses up the proof, or the nonce that it names; writes commit with
// that.
func (s *Service) spend(ctx context.Context, subject string, c Claims, writes ...commit.Write) error {
	fresh, now := s.fresh(), s.Now()
	seen, err := fresh.Use(now, subject, Once{ID: c.ID, IssuedAt: c.IssuedAt, Nonce: c.Nonce})
	if err != nil {
		return err
	}
	err = s.Commit.Commit(ctx, append(writes, seen...)...)
	if errors.Is(err, commit.ErrFenced) {
		if c.Nonce != "" {
			return fresh.Stale(now, subject)
		}
		return Refused()
	}
	return err
}

func (s *Service) fresh() Fresh {
	return Fresh{Ring: s.Ring, Domain: "device", Code: fault.DeviceSignatureInvalid,
		Text: "the device signature is not fresh; sign again with the nonce"}
}

// Wake is a device that wants to be woken by pushes, and its target.
type Wake struct{ DeviceID, Target string }

// Wakes lists the active devices of a user that have a push target.
func (s *Service) Wakes(ctx context.Context, userID string) (out []Wake, err error) {
	err = s.targets(ctx, userID, func(d Device, target string) { out = append(out, Wake{d.ID, target}) })
	return out, err
}

// Gone stops waking a user's devices at a target that no longer exists. A second call changes nothing.
func (s *Service) Gone(ctx context.Context, userID, target string) error {
	var writes []commit.Write
	err := s.targets(ctx, userID, func(d Device, of string) {
		if of == target {
			writes = append(writes, Mute{d.ID, d.Target})
		}
	})
	if err != nil || writes == nil {
		return err
	}
	return s.Commit.Commit(ctx, writes...)
}

// targets visits the active devices of a user that have a push target.
func (s *Service) targets(ctx context.Context, userID string, visit func(d Device, target string)) error {
	ds, err := s.Store.List(ctx, userID)
	if err != nil {
		return err
	}
	for _, d := range ds {
		if d.Target == nil || d.Status != Active {
			continue
		}
		plain, err := s.Ring.Open(d.Target, TargetData(d.UserID, d.ID))
		if err != nil {
			return fmt.Errorf("push target of device %s: %w", d.ID, err)
		}
		visit(d, string(plain))
	}
	return nil
}
