package edge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

// limitOf is the largest body of an endpoint, in bytes.
func limitOf(e *rest.Endpoint) int {
	if e.BodyLimit == 0 {
		return rest.DefaultBodyLimit
	}
	return e.BodyLimit
}

// handler serves one endpoint: the order of D-GEN-19 from the body's size on.
func (s *Server) handler(e *rest.Endpoint) fiber.Handler {
	key := e.Key()
	params := rest.PathParams(e.Path)
	return func(c *fiber.Ctx) error {
		r := requestOf(c.Context())
		if e.Disabled {
			s.unmatched(r, fault.New(fault.NotFound, "no such resource"))
			return nil
		}
		r.Endpoint, r.key = e, key
		q := rest.Query{Raw: r.Caller.RawQuery}
		if len(params) > 0 {
			q.Params = make(map[string]string, len(params))
			for _, name := range params {
				q.Params[name] = c.Params(name)
			}
		}
		if err := s.serve(r, q); err != nil {
			r.refuse(err)
		}
		return nil
	}
}

// serve answers a request of an endpoint. A large body is read once its sender is
// known, which may take longer than the work that follows (D-GEN-12).
func (s *Server) serve(r *Request, q rest.Query) error {
	large := limitOf(r.Endpoint) > rest.DefaultBodyLimit
	if large && r.body.announced > int64(limitOf(r.Endpoint)) {
		return tooLarge(limitOf(r.Endpoint))
	}
	if !large {
		if err := s.receive(r, limitOf(r.Endpoint)); err != nil {
			return err
		}
	}
	ctx, cancel := s.context(r)
	defer cancel()
	if err := s.establish(ctx, r); err != nil {
		return contextFault(ctx, err)
	}
	if large && r.body.announced != 0 {
		cancel()
		if err := s.receive(r, limitOf(r.Endpoint)); err != nil {
			return err
		}
		ctx, cancel = s.context(r)
		defer cancel()
		if err := s.still(ctx, r); err != nil {
			return contextFault(ctx, err)
		}
	}
	return contextFault(ctx, s.perform(ctx, r, q))
}

// contextFault is the fault that ended the context of a request, if err only reports the end of the context.
func contextFault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.Is(err, context.Canceled) && !errors.As(err, &f) && errors.As(context.Cause(ctx), &f) {
		return f
	}
	return err
}

// establish authenticates and authorizes the caller.
func (s *Server) establish(ctx context.Context, r *Request) error {
	e := r.Endpoint
	if r.encoded {
		return fault.New(fault.UnsupportedMedia, "a content coding is not accepted")
	}
	r.Caller.HasBody = len(r.body.text) > 0
	if !e.Repeatable {
		r.Caller.IdempotencyKey = ""
	}
	if e.WantsBodyHash {
		r.Caller.BodyHash = sha256.Sum256(r.body.text)
	}
	if s.opts.Firewall != nil {
		if err := s.opts.Firewall(ctx, r, r.key); err != nil {
			return err
		}
	}
	if guard := s.opts.Guards[e.Credential]; guard != nil {
		who, err := guard(ctx, r)
		if err == nil || who.By().UserID != "" { // the audit names the refused caller
			r.Caller = who
		}
		if err != nil {
			return err
		}
	}
	if s.opts.Authorize != nil {
		if err := s.opts.Authorize(ctx, r.Caller, e); err != nil {
			return err
		}
	}
	r.Caller.AsAdmin = s.asAdmin(r.Caller, e)
	return nil
}

func (s *Server) asAdmin(who rest.Caller, e *rest.Endpoint) bool {
	return e.Audience == rest.SelfOrAdmin && s.opts.ActsAsAdmin != nil && s.opts.ActsAsAdmin(who, e)
}

// mayName checks the users that a bound request names.
func (s *Server) mayName(ctx context.Context, who rest.Caller, e *rest.Endpoint, in any) error {
	if !e.Naming.Declared() {
		return nil
	}
	return s.opts.MayName(ctx, who, e, in)
}

// perform reads the fields of a request whose caller is established, runs it and
// answers.
func (s *Server) perform(ctx context.Context, r *Request, q rest.Query) error {
	e, body := r.Endpoint, r.body.text
	r.owned, r.Caller.HasBody = true, len(body) > 0
	if len(body) > 0 && !isJSON(r.fctx.Request.Header.ContentType()) {
		return fault.New(fault.UnsupportedMedia, "the body must be application/json")
	}
	if err := checkKey(r.Caller.IdempotencyKey); err != nil {
		return err
	}
	in, more, err := e.Bind(q, body)
	r.language(more.Language)
	if err != nil {
		return err
	}
	if err := s.mayName(ctx, r.Caller, e, in); err != nil {
		return err
	}
	if r.Caller.OTP == "" {
		r.Caller.OTP = more.OTP
	}
	if r.Caller.IdempotencyKey != "" {
		r.Caller.BodyHash = sha256.Sum256(body)
		return s.once(ctx, r, q, in, body)
	}
	if err := s.ready(ctx, r, q, in, body); err != nil {
		return err
	}
	out, err := s.run(ctx, r, q, in, body)
	if err == nil && e.Method == fiber.MethodGet { // a change that was made is reported
		err = s.still(ctx, r)
	}
	if err != nil {
		return err
	}
	return r.send(out)
}

// stillTime is the time for which a checked credential stays valid.
const stillTime = time.Second

// still checks the session of a long request again, because the process was stopped or the
// request had to wait. A caller who has lost the session meanwhile is refused.
func (s *Server) still(ctx context.Context, r *Request) error {
	e := r.Endpoint
	if !e.Credential.TakesSession() || s.opts.Now().Sub(r.start) < stillTime {
		return nil
	}
	_, err := s.opts.Guards[e.Credential](ctx, r)
	return err
}

// ready does what comes before run and outside of any transaction: the one-time code, and the
// rehearsal of a call that requires a second person.
func (s *Server) ready(ctx context.Context, r *Request, q rest.Query, in any, body []byte) error {
	if err := s.verify(ctx, r, in); err != nil {
		return err
	}
	if !s.mayPair(r.Endpoint) || s.guarded(r) != "" {
		return nil
	}
	var err error
	r.rehearsed, err = s.rehearse(ctx, r.Endpoint, capture(r.Endpoint, r.Caller, q, body), in)
	return err
}

// verify checks the one-time code if the endpoint requires one.
func (s *Server) verify(ctx context.Context, r *Request, in any) error {
	if !r.Endpoint.OTP {
		return nil
	}
	return s.opts.Verify(ctx, r.Caller, r.Endpoint, in)
}

// checkKey refuses an idempotency key that is not a short printable text.
func checkKey(key string) error {
	if len(key) > maxKey {
		return fault.New(fault.InvalidField, "the header idempotency-key is longer than %d characters", maxKey)
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return fault.New(fault.InvalidField, "the header idempotency-key must be printable ASCII")
		}
	}
	return nil
}

// isJSON accepts application/json with no parameter but the charset UTF-8.
func isJSON(contentType []byte) bool {
	if string(contentType) == rest.TypeJSON {
		return true
	}
	media, params, err := mime.ParseMediaType(string(contentType))
	if err != nil || media != rest.TypeJSON {
		return false
	}
	for name, value := range params {
		if name == "charset" && !strings.EqualFold(value, "utf-8") {
			return false
		}
	}
	return true
}

// guarded returns the action that the configuration puts before a call; "" for none. A service completes no challenge.
func (s *Server) guarded(r *Request) string {
	if r.Caller.Service != "" {
		return ""
	}
	return s.opts.Guarded[r.key]
}

// run follows binding and the one-time code. It runs the handler, starts a challenge, or makes
// the call pending a second person.
func (s *Server) run(ctx context.Context, r *Request, q rest.Query, in any, body []byte) (any, error) {
	e := r.Endpoint
	var action string
	var command any
	if action = s.guarded(r); action != "" || r.rehearsed != nil {
		c, err := captureShown(ctx, e, r.Caller, q, body, in)
		switch {
		case err != nil:
			return nil, err
		case action == "":
			return s.stand(ctx, c, r.rehearsed)
		}
		command = c
	} else {
		out, err := e.Call(ctx, r.Caller, in)
		if err != nil || e.Starts == "" {
			return out, err
		}
		p := out.(rest.Prepared)
		action, command = p.Action, p.Command
	}
	text, err := commandOf(command)
	if err != nil {
		return nil, err
	}
	out, headers, err := s.opts.Starter.Start(ctx, r.Caller, action, text)
	if err != nil {
		return nil, err
	}
	return rest.Reply[any]{Body: out, Headers: headers}, nil
}

// once runs the endpoint under an idempotency key.
func (s *Server) once(ctx context.Context, r *Request, q rest.Query, in any, body []byte) error {
	e, who := r.Endpoint, r.Caller
	status, answer, headers, replayed, err := s.opts.Idempotency.Run(ctx, who, who.IdempotencyKey, e.Method, e.Path,
		identify(q, body),
		func(ctx context.Context) error { return s.ready(ctx, r, q, in, body) },
		func(ctx context.Context) (int, []byte, []rest.Header, error) {
			out, err := s.run(ctx, r, q, in, body)
			if err == nil {
				a, err := e.EncodeToKeep(out)
				return cmp.Or(a.Status, fiber.StatusOK), a.Body, a.Headers, err
			}
			f, internal := rest.FaultOf(err)
			status, contentType, text := r.render(f)
			if internal || !kept(status) {
				return status, text, nil, err
			}
			headers := []rest.Header{{Name: "Content-Type", Value: contentType}}
			if n := rest.RetryAfter(f); n > 0 {
				headers = append(headers, rest.Header{Name: "Retry-After", Value: strconv.Itoa(n)})
			}
			return status, text, headers, nil
		})
	if err != nil {
		return err
	}
	if replayed {
		r.SetHeader("Idempotency-Replayed", "true")
		if status >= 400 {
			answer = restamp(answer, r.Caller.RequestID)
		}
	}
	r.status = status
	if status >= 400 {
		var p struct {
			Code fault.Code `json:"code"`
		}
		if json.Unmarshal(answer, &p) == nil {
			r.code = p.Code
		}
	}
	r.write(status, rest.Answer{Body: answer, Headers: headers})
	return nil
}

// identify returns the hash by which a repeated request is recognized: that of its body, with the parameters in its
// path.
func identify(q rest.Query, body []byte) [32]byte {
	if len(q.Params) == 0 {
		return sha256.Sum256(body)
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(q.Params)) {
		fmt.Fprintf(h, "%s=%q\n", name, q.Params[name])
	}
	h.Write(body)
	return [32]byte(h.Sum(nil))
}

// kept reports whether an answer may be stored: 2xx and the refusals that the same
// request would meet again (D-EXT-02).
func kept(status int) bool {
	switch {
	case status < 300:
		return true
	case status == fiber.StatusUnauthorized, status == fiber.StatusForbidden, status == fiber.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// restamp sets the id of the current request in a stored problem.
func restamp(body []byte, requestID string) []byte {
	const member = `,"requestId":"`
	text := string(body)
	i := strings.LastIndex(text, member)
	if i < 0 {
		return body
	}
	return []byte(text[:i+len(member)] + requestID + `"}`)
}
