package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"castellan/client/internal/dpop"
	"castellan/client/internal/fault"
)

// maxProblem bounds a refusal of a gateway, in bytes.
const maxProblem = 1 << 16

// Guarded sends a request to an upstream behind a gateway (D-EXT-11). If the guard requires a challenge, ask completes
// it, for example by Flow.Complete or Flow.Wait. The same request is then sent again with the grant. A body is bound by
// its digest, and is read into memory.
//
// The answer is that of the upstream, also a redirect to another server, or a refusal of the guard. After an error of
// the last request, the upstream may have acted. Errors: those of the transport and of ask; *Error if the challenge
// ends without a grant.
func (c *Client) Guarded(r *http.Request, ask func(context.Context, *Flow) (Outcome, error)) (*http.Response, error) {
	var body []byte
	if r.Body != nil && r.Body != http.NoBody {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
	}
	send := func(grant string) (*http.Response, error) {
		again := r.Clone(r.Context())
		if err := c.bear(again); err != nil {
			return nil, err
		}
		if body != nil {
			sum := sha256.Sum256(body)
			again.Header.Set("content-digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
			again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		if grant != "" {
			again.Header.Set("castellan-grant", grant)
		}
		return c.do(again)
	}
	first, err := send("")
	if err != nil || first.StatusCode != http.StatusUnauthorized {
		return first, err
	}
	text, err := io.ReadAll(io.LimitReader(first.Body, maxProblem))
	first.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the refusal: %w", err)
	}
	first.Body = io.NopCloser(bytes.NewReader(text))
	var problem struct {
		Code Code `json:"code"`
		started
	}
	if json.Unmarshal(text, &problem) != nil || problem.Code != fault.ChallengeRequired {
		return first, nil
	}
	flow, err := c.flow(problem.started, first.Header)
	if err != nil {
		return nil, err
	}
	o, err := ask(r.Context(), flow)
	var data struct {
		Grant string `json:"grant"`
	}
	switch {
	case err != nil:
		return nil, err
	case !o.Done || !o.Success || json.Unmarshal(o.Data, &data) != nil || data.Grant == "":
		return nil, &Error{Status: http.StatusForbidden, Code: o.Code, Detail: "the challenge ended without a grant",
			Message: o.Message}
	}
	return send(data.Grant)
}

// bear adds the session to a request of another server, with a proof of the key to which the session is bound.
func (c *Client) bear(r *http.Request) error {
	token, err := c.session(r.Context())
	if err != nil || token == "" {
		return err
	}
	r.Header.Set("x-auth", token)
	if c.Key == nil {
		return nil
	}
	target := url.URL{Scheme: r.URL.Scheme, Host: cmp.Or(r.Host, r.URL.Host), Path: r.URL.Path, RawPath: r.URL.RawPath}
	proof, err := dpop.Sign(c.Key.signer, dpop.Claims{Method: r.Method, Target: target.String(),
		TokenHash: dpop.TokenHash(token)})
	if err == nil {
		r.Header.Set("dpop", proof)
	}
	return err
}
