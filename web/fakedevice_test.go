package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/factor/intent"
	"castellan/internal/load"
)

// phone is the part of the fake service that a registered device uses. It verifies every signature as the real service
// does: a page that signs other bytes than it sends, or another intent than it shows, is refused.
type phone struct {
	*service

	mu      sync.Mutex
	key     *ecdsa.PublicKey
	target  map[string]any // of Web Push, as registered
	pending []*request
	answers []string // challenge, value
	alarms  []string
	asked   int
	down    bool // connections are closed without an answer
	removed bool // the device is unknown
}

type request struct {
	id, number string
	document   []byte
	left       int // seconds
}

const (
	deviceID = "01JD0000000000000000000DEV"
	address  = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
)

// recorder reports the notifications of the service worker to the page. A browser without a screen forgets some of them
// at once, so the list of the shown ones cannot be tested.
const recorder = `
const recorded = new BroadcastChannel('notifications');
const shows = ServiceWorkerRegistration.prototype.showNotification;
ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
  recorded.postMessage([options.tag, options.lang, title].join(' '));
  return shows.call(this, title, options);
};`

// newPhone returns the fake service with the endpoints of devices.
func newPhone(t *testing.T) *phone {
	p := &phone{}
	p.service = newServiceWith(t, func(mux *http.ServeMux) {
		mux.HandleFunc("GET /authenticator/service", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{"publicUrl": p.URL})
		})
		mux.HandleFunc("GET /.well-known/vapid.json", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{"publicKey": "BLc4xRzKlKORKWlbdgFaBrrPK3ydWAHo4M0gs0i1oEKg" +
				"PpWC5cW8OCzVrOQRv-1npXRWk8udnW3oYhIO4475rds"})
		})
		mux.HandleFunc("GET /static/sw-authenticator.js", func(w http.ResponseWriter, r *http.Request) {
			servePage("sw-authenticator.js")(w, r)
			_, _ = io.WriteString(w, recorder)
		})
		mux.HandleFunc("POST /auth/devices", p.register)
		mux.HandleFunc("POST /auth/devices/alarm", p.alarm)
		mux.HandleFunc("GET /auth/2fa/challenge/ongoing", p.ongoing)
	}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.isDown() {
				panic(http.ErrAbortHandler)
			}
			if r.URL.Path == "/auth/2fa/challenge/complete" && r.Header.Get("device-signature") != "" {
				p.decide(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	return p
}

func (p *phone) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// ask starts a challenge for the device. number is for number matching, "" without.
func (p *phone) ask(id, title, number string, rows ...intent.Row) {
	doc := intent.Document{Version: intent.Version, ChallengeID: id, Action: "WITHDRAW", UserID: "u-1",
		CreatedAt: 1700000000000, Language: "en", Title: title, Rows: rows, CommandDigest: "x"}.Canonical()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = append(p.pending, &request{id: id, number: number, document: doc, left: 120})
}

// withdraw is ask for a withdrawal to the address.
func (p *phone) withdraw(id, number string) {
	p.ask(id, "Withdraw 1.5 BTC", number, intent.Row{Key: "amount", Label: "Amount", Value: "1.5 BTC (Bitcoin)"},
		intent.Row{Key: "address", Label: "Address", Value: address},
		intent.Row{Key: "time", Label: "Time", Value: "2026-11-26T15:00:00Z"},
		intent.Row{Key: "ip", Label: "IP address", Value: "203.0.113.7"})
}

func (p *phone) heard() (answers, alarms []string, asked int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.answers...), append([]string{}, p.alarms...), p.asked
}

func (p *phone) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *phone) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		PublicKey  struct{ X, Y string }
		PushTarget map[string]any
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &in)
	p.mu.Lock()
	point := append(append([]byte{4}, coordinate(in.PublicKey.X)...), coordinate(in.PublicKey.Y)...)
	p.key, _ = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	p.target, p.removed = in.PushTarget, false
	p.mu.Unlock()
	if _, ok := p.verified(r, body); !ok || r.Header.Get("x-auth") == "" {
		refuse(w, http.StatusUnauthorized, "DEVICE_SIGNATURE_INVALID", "The signature is wrong.", nil)
		return
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "deviceId": deviceID})
}

func coordinate(text string) []byte {
	b, _ := base64.RawURLEncoding.DecodeString(text)
	return b
}

// verified checks the proof of a request as D-AUTH-06 has it, except for its age, and returns its claims.
func (p *phone) verified(r *http.Request, body []byte) (claims map[string]any, ok bool) {
	p.mu.Lock()
	key, removed := p.key, p.removed
	p.mu.Unlock()
	parts := strings.Split(r.Header.Get("device-signature"), ".")
	if len(parts) != 3 || key == nil || removed {
		return nil, false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if len(sig) != 64 || !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return nil, false
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(text, &claims)
	want := map[string]any{"aud": p.URL, "htm": r.Method, "htu": r.URL.RequestURI()}
	if len(body) > 0 {
		sum := sha256.Sum256(body)
		want["bh"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	for name, value := range want {
		if claims[name] != value {
			return nil, false
		}
	}
	return claims, true
}

func (p *phone) ongoing(w http.ResponseWriter, r *http.Request) {
	if _, ok := p.verified(r, nil); !ok {
		refuse(w, http.StatusUnauthorized, "DEVICE_SIGNATURE_INVALID", "The signature is wrong.", nil)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	list := []any{}
	for _, one := range p.pending {
		data := map[string]any{"challengeId": one.id, "methodId": "m-push", "action": "WITHDRAW", "actionTitle": "Withdraw",
			"params": map[string]any{"expire": one.left, "infoTable": map[string]any{"data": []any{}}}}
		if one.number != "" {
			data["numberMatching"] = true
		}
		list = append(list, map[string]any{"body": "Withdraw?", "data": data, "intent": json.RawMessage(one.document),
			"intentDigest": intent.Digest(one.document)})
	}
	answer(w, http.StatusOK, list)
}

func (p *phone) decide(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	claims, ok := p.verified(r, body)
	var in struct{ ChallengeID, MethodID, Value string }
	_ = json.Unmarshal(body, &in)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, one := range p.pending {
		if one.id != in.ChallengeID {
			continue
		}
		if !ok || claims["int"] != intent.Digest(one.document) || claims["cid"] != one.id || claims["val"] != in.Value {
			refuse(w, http.StatusUnauthorized, "DEVICE_SIGNATURE_INVALID", "The signature is wrong.", nil)
			return
		}
		if want := strings.TrimSuffix("APPROVED:"+one.number, ":"); in.Value != "DENIED" && in.Value != want {
			refuse(w, http.StatusUnprocessableEntity, "OTP_INVALID", "The number is wrong.", map[string]any{"attemptsLeft": 4})
			return
		}
		p.pending = append(p.pending[:i:i], p.pending[i+1:]...)
		p.answers = append(p.answers, in.ChallengeID+" "+in.Value)
		answer(w, http.StatusOK, map[string]any{"action": "WITHDRAW", "execResult": map[string]any{"success": true}})
		return
	}
	refuse(w, http.StatusConflict, "CHALLENGE_CLOSED", "The challenge is closed.", nil)
}

func (p *phone) alarm(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if _, ok := p.verified(r, body); !ok {
		refuse(w, http.StatusUnauthorized, "DEVICE_SIGNATURE_INVALID", "The signature is wrong.", nil)
		return
	}
	var in struct{ ChallengeID string }
	_ = json.Unmarshal(body, &in)
	p.set(func() { p.alarms = append(p.alarms, in.ChallengeID) })
	answer(w, http.StatusOK, map[string]any{"data": map[string]any{"ended": 2}})
}

// soon waits for what the page sends to the fake service.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s (%s)", what, load.Now())
		}
	}
}
