package edge

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/gofiber/fiber/v2"
)

func (r *Request) send(out any) error {
	a, err := r.Endpoint.Encode(out)
	if err != nil {
		return err
	}
	status := cmp.Or(a.Status, fiber.StatusOK)
	if r.Endpoint.Tagged && hasTag(r.Caller.HasTags, a.Headers) {
		status, a.Body = fiber.StatusNotModified, nil
	}
	r.write(status, a)
	a.Release()
	return nil
}

// hasTag reports whether the client has the version that an answer's ETag names.
func hasTag(has string, headers []rest.Header) bool {
	return has != "" && slices.ContainsFunc(headers, func(h rest.Header) bool {
		return h.Name == fiber.HeaderETag && rest.NamesTag(has, h.Value)
	})
}

func (r *Request) write(status int, a rest.Answer) {
	r.status = status
	resp := &r.fctx.Response
	resp.SetStatusCode(status)
	resp.Header.SetContentType(cmp.Or(a.ContentType, rest.TypeJSON))
	for _, h := range a.Headers {
		resp.Header.Set(h.Name, h.Value)
	}
	resp.SetBody(a.Body)
}

// refuse is the only place that turns an error into an answer.
func (r *Request) refuse(err error) {
	f, internal := rest.FaultOf(err)
	if internal {
		r.internal = err
	}
	status, contentType, body := r.render(f)
	r.code = f.Code
	r.write(status, rest.Answer{Body: body, ContentType: contentType})
	if n := rest.RetryAfter(f); n > 0 {
		r.SetHeader("Retry-After", strconv.Itoa(n))
	}
	if f.Nonce != "" {
		name := "device-signature-nonce"
		if f.Code == fault.DPoPInvalid {
			name = "dpop-nonce"
		}
		r.SetHeader(name, f.Nonce)
	}
}

// render words a fault in the general shape, or in the endpoint's own once the caller
// is established. In development mode it names the limit that refused.
func (r *Request) render(f *fault.Error) (status int, contentType string, body []byte) {
	r.refused = f
	if r.srv.opts.Dev && f.Limit != "" {
		named := *f
		named.Message += " (" + f.Limit + ")"
		f = &named
	}
	if r.owned && r.Endpoint != nil {
		status := rest.StatusOf(f.Code)
		if shape := r.Endpoint.Refusal(status, f); shape != nil {
			if body, err := json.Marshal(shape); err == nil {
				return status, rest.TypeJSON, body
			}
		}
	}
	status, body = rest.Problem(f, r.Caller.Language, r.Caller.RequestID)
	return status, rest.TypeProblem, body
}
