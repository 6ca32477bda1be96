package office

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// realm is a login service elsewhere, which publishes its key and issues tokens.
type realm struct {
	key    ed25519.PrivateKey
	server *httptest.Server
	down   atomic.Bool
}

const (
	realmIssuer = "https://id.example.test/realms/shop"
	linkPath    = "/admin/user/link"
)

func newRealm(t *testing.T) *realm {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	storetest.Must(t, err)
	public, _ := device.PublicKey(key)
	r := &realm{key: key}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if r.down.Load() {
			http.Error(w, "down", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, strings.Replace(public.JWK(), "{", `{"kid":"k1","use":"sig",`, 1))
	}))
	t.Cleanup(r.server.Close)
	return r
}

// setting is the value of guard.issuers.
func (r *realm) setting() string {
	return "GUARD_ISSUERS=issuer=" + realmIssuer + " jwks_url=" + r.server.URL + " audience=castellan subject_claim=uid"
}

// token returns a token of a subject, with some claims changed.
func (r *realm) token(subject string, changes ...map[string]any) string {
	claims := map[string]any{"iss": realmIssuer, "aud": []string{"account", "castellan"}, "uid": subject, "sub": "x",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "sid": "s1"}
	for _, c := range changes {
		maps.Copy(claims, c)
	}
	body, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"EdDSA","typ":"JWT","kid":"k1"}`)) + "." + encode(body)
	return signed + "." + encode(ed25519.Sign(r.key, []byte(signed)))
}

// An owner who logs in elsewhere approves a withdrawal here, if an administrator has linked the subject.
func TestForeignOwnerApprovesWithdrawal(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		r := newRealm(t)
		r.down.Store(true)
		s.Set(r.setting())
		d := newVault(t, s)
		ask := func(externalID, token string) blackbox.Answer {
			body := d.request(externalID)
			body["userToken"] = token
			return d.Do(t, "POST", withdrawalsPath, body, d.wallet)
		}
		ask("w1", r.token("jane")).Is(t, 503, "UNAVAILABLE")
		r.down.Store(false)
		d.Kill() // a failed issuer is asked again after a minute
		d.Node = s.Start()
		ask("w1", r.token("jane")).Is(t, 401, "SUBJECT_UNKNOWN")

		link := func(subject, issuer, userID string) map[string]string {
			return map[string]string{"subject": subject, "issuer": issuer, "userId": userID}
		}
		d.Ok(t, "POST", linkPath, link("jane", realmIssuer, d.Customer.ID), d.Boss)
		d.Do(t, "POST", linkPath, link("jane", realmIssuer, d.Customer.ID), d.Boss).Is(t, 409, "RECORD_ALREADY_EXIST")
		ask("w1", newRealm(t).token("jane")).Is(t, 401, "UNAUTHENTICATED") // by another key
		ask("w1", r.token("jane", map[string]any{"exp": time.Now().Unix() - 1})).Is(t, 401, "TOKEN_EXPIRED")

		f := blackbox.FlowOf(t, ask("w1", r.token("jane")).Is(t, 200, ""))
		again := blackbox.FlowOf(t, ask("w1", r.token("jane", map[string]any{"sid": "s2"})).Is(t, 200, ""))
		if again.Challenge.ChallengeID != f.Challenge.ChallengeID || s.Count("withdrawal_queue") != 0 {
			t.Errorf("challenge %s, then %s", f.Challenge.ChallengeID, again.Challenge.ChallengeID)
		}
		id := withdrawn(t, d.Complete(t, again, again.Method(t, "SMS"), d.Code(t, d.Customer, "SMS")))
		storetest.Equal(t, d.status(t, id), "queued", "approved")
		r.down.Store(true) // the last keys are kept
		blackbox.FlowOf(t, ask("w2", r.token("jane")).Is(t, 200, ""))

		d.Ok(t, "DELETE", linkPath, link("jane", realmIssuer, d.Customer.ID), d.Boss)
		ask("w3", r.token("jane")).Is(t, 401, "SUBJECT_UNKNOWN")

		kurt := "user link --user " + d.Customer.ID + " --subject kurt --issuer "
		s.Says(0, kurt+realmIssuer)
		elsewhere := blackbox.FlowOf(t, ask("w4", r.token("kurt")).Is(t, 200, ""))
		s.Says(1, kurt+realmIssuer, "already")
		s.Says(1, kurt+"https://evil.example", "is not in guard.issuers")
		s.Says(0, kurt+realmIssuer+" --remove")
		s.Says(1, kurt+realmIssuer+" --remove")
		ask("w5", r.token("kurt")).Is(t, 401, "SUBJECT_UNKNOWN")
		d.Complete(t, elsewhere, elsewhere.Method(t, "SMS"), "000000").Is(t, 409, "CHALLENGE_CLOSED")
		if hits := blackbox.Find(s.AtRest(), r.token("jane")); len(hits) > 0 {
			t.Errorf("a token is kept in %v", hits)
		}
	})
}
