package edge

import (
	"context"
	"encoding/json"
	"maps"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// SecondPerson stores calls until another person has decided on them (D-EXT-08).
type SecondPerson interface {
	// Rehearse runs fn, which executes c, and rolls everything back. It returns a summary of the
	// changes; "" for none. The errors are those of fn.
	Rehearse(ctx context.Context, c Captured, fn func(context.Context) error) (summary string, err error)
	// Stand stores command, which is c as JSON, and returns the answer of the call. The command
	// contains the caller's data and is stored sealed.
	Stand(ctx context.Context, c Captured, command []byte, summary string) (out any, err error)
}

// pair adds the endpoints that always require a second person to FourEyes.
func (o *Options) pair(endpoints []rest.Endpoint) {
	all := map[string]bool{}
	maps.Copy(all, o.FourEyes)
	for _, e := range endpoints {
		if e.Paired {
			all[e.Key()] = true
		}
	}
	o.FourEyes = all
}

// Rehearsal is the outcome of a trial run of a call that is pending a second person.
type Rehearsal struct {
	summary string
	out     any // the answer of a call that would change nothing
	err     error
}

// second reports whether a call requires a second person: by the configuration, by its endpoint or by a rule of the
// money policy. The configuration does not concern services. POLICY_DENIED. It runs outside of any transaction.
func (s *Server) second(ctx context.Context, e *rest.Endpoint, who rest.Caller, in any) (bool, error) {
	needs, err := s.governed(ctx, e, who, in)
	if needs = needs || s.opts.FourEyes[e.Key()] && who.Service == ""; err != nil || needs || e.PairedIf == nil {
		return needs, err
	}
	return e.PairedIf(ctx, who, in)
}

// governed reports whether a rule of the money policy requires a second person for a call. POLICY_DENIED.
func (s *Server) governed(ctx context.Context, e *rest.Endpoint, who rest.Caller, in any) (bool, error) {
	if e.Governs == nil || s.opts.Governs == nil {
		return false, nil
	}
	return s.opts.Governs(ctx, who, func(ctx context.Context) (rest.Governed, error) { return e.Governs(ctx, in) })
}

// rehearse tries a call that requires a second person, so that a call which would be refused,
// or would change nothing, is answered at once. It is nil for other calls. It runs outside of
// any transaction.
func (s *Server) rehearse(ctx context.Context, e *rest.Endpoint, c Captured, in any) (*Rehearsal, error) {
	if second, err := s.second(ctx, e, c.Caller, in); err != nil || !second {
		return nil, err
	}
	h := new(Rehearsal)
	h.summary, h.err = s.opts.SecondPerson.Rehearse(ctx, c, func(ctx context.Context) (err error) {
		h.out, err = c.call(ctx, e, in)
		return err
	})
	if _, undone := undone(h.out); undone {
		h.summary = ""
	}
	return h, nil
}

// mayPair reports whether calls of an endpoint may require a second person.
func (s *Server) mayPair(e *rest.Endpoint) bool {
	return e != nil && (e.PairedIf != nil || e.Governs != nil || s.opts.FourEyes[e.Key()])
}

// stand answers a rehearsed call: its change is now pending a second person.
func (s *Server) stand(ctx context.Context, c Captured, h *Rehearsal) (any, error) {
	if h.err != nil || h.summary == "" {
		return h.out, h.err
	}
	command, err := commandOf(c)
	if err != nil {
		return nil, err
	}
	out, err := s.opts.SecondPerson.Stand(ctx, c, command, h.summary)
	return rest.Reply[any]{Body: out, Status: fiber.StatusAccepted}, err
}

// undone is the reason why a call with the status of a success did nothing.
func undone(out any) (why string, is bool) {
	if u, may := out.(rest.Undone); may {
		return u.Undone()
	}
	return "", false
}

// Permit checks whether a caller may use an endpoint, by its key, as Authorize does.
func (s *Server) Permit(ctx context.Context, who rest.Caller, key string) error {
	e := s.index[key]
	switch {
	case e == nil:
		return fault.New(fault.NotFound, "no such resource")
	case s.opts.Authorize == nil:
		return nil
	}
	return s.opts.Authorize(ctx, who, e)
}

// PermitCaptured checks whether a caller may make a captured request: the endpoint, as Permit
// does, and the users that the request names.
func (s *Server) PermitCaptured(ctx context.Context, who rest.Caller, c Captured) error {
	if err := s.Permit(ctx, who, c.key()); err != nil {
		return err
	}
	e, in, err := c.bind(s.index)
	if err != nil {
		return nil // it cannot run: CarryOut returns the reason
	}
	return s.mayName(ctx, who, e, in)
}

// RehearseCaptured is the rehearsal of a captured request that requires a second person;
// otherwise nil. RunRehearsed takes it.
func (s *Server) RehearseCaptured(ctx context.Context, c Captured) (*Rehearsal, error) {
	if !s.mayPair(s.index[c.key()]) {
		return nil, nil
	}
	e, in, err := s.bindCaptured(ctx, c)
	if err != nil {
		return nil, err
	}
	h, err := s.rehearse(ctx, e, c, in)
	if h != nil {
		err = h.err
	}
	return h, err
}

// RunRehearsed is RunCaptured for a captured request with its rehearsal: with a rehearsal, the
// request becomes pending.
func (s *Server) RunRehearsed(ctx context.Context, c Captured, h *Rehearsal) (json.RawMessage, error) {
	if h == nil {
		if err := s.stillAlone(ctx, c); err != nil {
			return nil, err
		}
		return s.RunCaptured(ctx, c)
	}
	out, err := s.stand(ctx, c, h)
	if err != nil {
		return nil, err
	}
	return keepCaptured(s.index[c.key()], out)
}

// stillAlone refuses a governed request if a rule asks for a second person by now.
func (s *Server) stillAlone(ctx context.Context, c Captured) error {
	e := s.index[c.key()]
	if e == nil || e.Governs == nil {
		return nil // RunCaptured judges whether it can run
	}
	e, in, err := s.bindCaptured(ctx, c)
	if err != nil {
		return err
	}
	second, err := s.second(ctx, e, c.Caller, in)
	if err == nil && second {
		err = fault.New(fault.InvalidState, "a rule asks for a second person by now; send the request again")
	}
	return err
}

// HoldsSecret reports whether the answer of an endpoint, by its key, holds a secret (rest.Endpoint.Secret).
func (s *Server) HoldsSecret(key string) bool {
	e := s.index[key]
	return e != nil && len(e.Secrets) > 0
}

// WithoutSecrets returns an answer of an endpoint, by its key, without the secrets.
func (s *Server) WithoutSecrets(key string, answer json.RawMessage) (json.RawMessage, error) {
	e := s.index[key]
	if e == nil { // of another version
		return nil, nil
	}
	return e.WithoutSecrets(answer)
}

// CarryOut runs a request that a second person has approved, judged by the Authorize and the
// MayName of the server. Beside the errors of RunCaptured: INVALID_STATE if the answer reports
// that nothing was done.
func (s *Server) CarryOut(ctx context.Context, c Captured) (json.RawMessage, error) {
	e, in, err := s.bindCaptured(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, err := s.governed(ctx, e, c.Caller, in); err != nil {
		return nil, err
	}
	out, err := c.call(ctx, e, in)
	if err != nil {
		return nil, err
	}
	if why, undone := undone(out); undone {
		return nil, fault.New(fault.InvalidState, "%s", why)
	}
	return keepCaptured(e, out)
}
