// Package callback posts the outcomes of challenges to the services that requested them (D-EXT-10).
//
// The one idea: a receiver needs no shared secret. A message is signed with the service's own signing key, whose public
// half is in the JWKS, and names its receiver, so that no other accepts it. An administrator chose the URL, so private
// addresses are permitted, but no link-local ones, where clouds serve their metadata. A redirect is not followed.
//
// Start reading at Sender.Send.
package callback

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/webhook"
	"castellan/outbound/fetch"
)

// Pauses are the times between the attempts of a message; the last one repeats until the message expires.
var Pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

const timeout = 10 * time.Second // of one attempt

// Sender is a message.Sender for the channel Callback. It is safe for concurrent use.
type Sender struct {
	// Signer returns the signing key in use and its id.
	Signer func(now time.Time) (kid string, key ed25519.PrivateKey)
	Now    func() time.Time

	client *http.Client
}

var _ message.Sender = (*Sender)(nil)

// New returns a Sender. It opens no connection.
func New(signer func(time.Time) (string, ed25519.PrivateKey), now func() time.Time) *Sender {
	dialer := &net.Dialer{Control: fetch.Guard{Private: true}.Judge}
	return &Sender{Signer: signer, Now: now, client: fetch.HTTPClient(timeout, nil, &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxResponseHeaderBytes: 16 << 10, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second})}
}

// Send posts the JSON body m.Text to the URL m.To. All attempts of a message have its key as webhook-id. nil means that
// the receiver answered 2xx. 410 Gone ends the attempts; any other answer is retried.
func (s *Sender) Send(ctx context.Context, key string, m message.Rendered) error {
	body := []byte(m.Text)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.To, strings.NewReader(m.Text))
	if err != nil || m.Channel != message.Callback {
		return &message.DeliveryError{Permanent: true, Err: errors.New("callback: malformed message")}
	}
	kid, private := s.Signer(s.Now())
	webhook.SignPublic(request.Header, kid, private, key, s.Now(), body)
	var of struct {
		Service string `json:"aud"`
	}
	if json.Unmarshal(body, &of) == nil && of.Service != "" { // a message of an earlier version names none
		request.Header.Set("webhook-aud", of.Service)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "castellan")
	answer, err := s.client.Do(request)
	if err != nil {
		var late net.Error
		return &message.DeliveryError{Timeout: errors.As(err, &late) && late.Timeout(),
			Err: errors.New("callback: the service could not be reached")}
	}
	defer fetch.Drain(answer)
	if code := answer.StatusCode; code < 200 || code > 299 {
		return &message.DeliveryError{Permanent: code == http.StatusGone, Err: fmt.Errorf("callback: answered %d", code)}
	}
	return nil
}

// Host returns the host of a callback, so that a slow one delays no other.
func Host(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
