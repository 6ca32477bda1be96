package client

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// GuardRow is one value that the user sees before approving. Value is complete.
type GuardRow struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Value string `json:"value"`
}

// GuardRequest puts an operation of a service behind a challenge of a user (D-EXT-10).
type GuardRequest struct {
	ActionCode string     `json:"actionCode"`
	UserID     string     `json:"userId,omitempty"`    // or UserToken
	UserToken  string     `json:"userToken,omitempty"` // x-auth of the user
	Title      string     `json:"title"`
	Rows       []GuardRow `json:"rows"` // 1 to 20
	// Reference is the service's own id of the operation. An equal request gets the same challenge.
	Reference string          `json:"reference"`
	Payload   json.RawMessage `json:"payload,omitempty"` // at most 16 KiB; RedeemGrant returns it
}

// GuardOutcome is the state of a service's challenge.
type GuardOutcome struct {
	ID          string     `json:"id"`
	Status      string     `json:"status"` // PENDING, COMPLETED, DENIED, EXPIRED or FAILED
	Reference   string     `json:"reference"`
	Grant       string     `json:"grant"` // of COMPLETED, until it is redeemed
	CompletedAt *time.Time `json:"completedAt"`
	RedeemedAt  *time.Time `json:"redeemedAt"`
}

// RedeemedGrant is the result of the one successful redemption.
type RedeemedGrant struct {
	Reference  string          `json:"reference"`
	Payload    json.RawMessage `json:"payload"`
	RedeemedAt time.Time       `json:"redeemedAt"`
}

// GuardEvent is the outcome that a callback reports.
type GuardEvent struct {
	Type      string    `json:"type"` // such as challenge.completed
	Service   string    `json:"aud"`  // name of the key that the outcome is for
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		ID        string `json:"id"`
		Reference string `json:"reference"`
		Status    string `json:"status"`
	} `json:"data"`
}

// Guard starts the challenge of an operation. The service hands the PAuth of the flow to its client. Guard is repeated
// when the answer is lost. Errors: *Error, such as INVALID_STATE for a reference that was used with another body.
func (c *Client) Guard(ctx context.Context, r GuardRequest) (*Flow, error) {
	return c.start(ctx, http.MethodPost, "/guard/challenges", r, Header("service-auth", c.serviceKey), repeatable)
}

// GuardOutcome returns the outcome of a challenge by its id. It waits while the status is PENDING, at most until ctx
// ends. Errors: *Error.
func (c *Client) GuardOutcome(ctx context.Context, id string) (GuardOutcome, error) {
	for {
		var r record[GuardOutcome]
		err := c.Call(ctx, http.MethodGet, "/guard/challenges/"+url.PathEscape(id), nil, &r, Header("prefer", "wait=25"))
		if err != nil || r.Data.Status != "PENDING" {
			return r.Data, err
		}
		select {
		case <-ctx.Done():
			return r.Data, ctx.Err()
		case <-time.After(firstPause):
		}
	}
}

// RedeemGrant redeems a grant, once for each challenge. It is not repeated: if the answer is lost, the redemption may
// have taken effect. Errors: *Error; GRANT_USED with RedeemedAt if the grant was already redeemed.
func (c *Client) RedeemGrant(ctx context.Context, grant string) (RedeemedGrant, error) {
	var r record[RedeemedGrant]
	err := c.Call(ctx, http.MethodPost, "/guard/grants/redeem", map[string]string{"grant": grant}, &r)
	return r.Data, err
}

// callbackAge is how much older or newer than now an attempt of a callback may be.
const callbackAge = 5 * time.Minute

// Callback verifies a callback with the public keys of the service and returns its event. With a key (Service), the
// event must be for the service of this name. The same event may arrive more than once, with the same webhook-id.
func (c *Client) Callback(ctx context.Context, h http.Header, body []byte) (e GuardEvent, err error) {
	stamp := h.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age.Abs() > callbackAge {
		return e, errors.New("the callback is too old, or has no time")
	}
	keys, err := c.keys(ctx, h.Get("webhook-key-id"))
	if err != nil {
		return e, err
	}
	signed := append([]byte(h.Get("webhook-id")+"."+stamp+"."), body...)
	for _, key := range keys {
		for one := range strings.FieldsSeq(h.Get("webhook-signature")) {
			text, v1a := strings.CutPrefix(one, "v1a,")
			if sig, err := base64.StdEncoding.DecodeString(text); v1a && err == nil && ed25519.Verify(key, signed, sig) {
				return c.addressed(h, body)
			}
		}
	}
	return e, fmt.Errorf("the callback is not signed by a key of %s", c.URL)
}

// addressed reads the event of a verified callback, which must be for the service of this client's key.
func (c *Client) addressed(h http.Header, body []byte) (e GuardEvent, err error) {
	if err := json.Unmarshal(body, &e); err != nil {
		return e, err
	}
	name, _, _ := strings.Cut(c.serviceKey, ".")
	if header := h.Get("webhook-aud"); name != "" && (e.Service != name || header != "" && header != name) {
		return GuardEvent{}, fmt.Errorf("the callback is not for %s", name)
	}
	return e, nil
}
