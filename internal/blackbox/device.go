package blackbox

import (
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
)

const (
	DevicesPath = "/auth/devices"
	OngoingPath = "/auth/2fa/challenge/ongoing"
)

// Pocket is a registered device of an account, as an app on a phone has it.
type Pocket struct {
	N   *Node
	Aud string // the service's public URL
	Key crypto.Signer
	Pub device.Key
	ID  string
}

// NewPocket returns a device that is not registered; its id is that of its key.
func NewPocket(t *testing.T, n *Node, alg string) Pocket {
	t.Helper()
	p := Pocket{N: n, Aud: n.URL}
	p.Key, p.Pub = devicetest.Signer(t, alg)
	p.ID = p.Pub.Thumbprint()
	return p
}

// Sign makes the headers of a signed request; edit may change the claims first.
func (p Pocket) Sign(t *testing.T, method, path string, body []byte, c device.Claims,
	edit ...func(*device.Claims)) Headers {
	t.Helper()
	c.Issuer, c.Audience, c.Method, c.Target, c.BodyHash = p.ID, p.Aud, method, path, device.HashBody(body)
	for _, e := range edit {
		e(&c)
	}
	proof := storetest.Value(device.Sign(p.Key, c))(t)
	return Headers{"device-signature": proof}
}

// Enroll registers a device for the account of an x-auth token.
func Enroll(t *testing.T, n *Node, a Account, x, alg, target string) Pocket {
	t.Helper()
	p := NewPocket(t, n, alg)
	f := FlowOf(t, p.Register(t, x, target))
	got := n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, a, "SMS")).Is(t, 200, "")
	final := ReadFinal(t, got)
	if p.ID = final.ExecResult.Data["deviceId"]; final.Action != "DEVICE_ADD" || !final.ExecResult.Success || p.ID == "" ||
		len(final.ExecResult.Data) != 1 {
		t.Fatalf("the enrolment answered %s", got)
	}
	return p
}

// Register sends the request of an enrolment, signed with the new key.
func (p Pocket) Register(t *testing.T, x, target string, edit ...func(*device.Claims)) Answer {
	t.Helper()
	body := `{"publicKey":` + p.Pub.JWK() +
		`,"brand":"Acme","model":"One","description":"","platform":"android"` + target + `}`
	h := p.Sign(t, "POST", DevicesPath, []byte(body), device.Claims{}, edit...)
	h["x-auth"] = x
	return p.N.Do(t, "POST", DevicesPath, body, h)
}

// Answer answers the push of a flow without any token.
func (p Pocket) Answer(t *testing.T, f Flow, value string, edit ...func(*device.Claims)) Answer {
	t.Helper()
	body, h := p.Decision(t, f, value, edit...)
	return p.N.Do(t, "POST", CompletePath, body, h)
}

func (p Pocket) Decision(t *testing.T, f Flow, value string, edit ...func(*device.Claims)) ([]byte, Headers) {
	t.Helper()
	m := f.Method(t, "PUSH")
	body, err := json.Marshal(
		map[string]string{"challengeId": f.ChallengeID, "methodId": m.ID, "method": "PUSH", "value": value, "deviceId": p.ID},
	)
	storetest.Must(t, err)
	return body, p.Sign(t, "POST", CompletePath, body,
		device.Claims{Challenge: f.ChallengeID, MethodID: m.ID, Value: value}, edit...)
}

// Ongoing lists the challenges that wait for the device.
func (p Pocket) Ongoing(t *testing.T, edit ...func(*device.Claims)) Answer {
	t.Helper()
	path := OngoingPath + "?deviceId=" + p.ID
	return p.N.Do(t, "GET", path, nil, p.Sign(t, "GET", path, nil, device.Claims{}, edit...))
}

// List returns the challenges that wait for the device.
func (p Pocket) List(t *testing.T) (all []struct {
	Data struct{ ChallengeID, MethodID string }
}) {
	t.Helper()
	p.Ongoing(t).Is(t, 200, "").Read(t, &all)
	return all
}

// Patient lifts the bounds on pushes and messages, for tests of other features.
func Patient(s *Site) *Site {
	return s.Set("LIMITS_PUSH_PENDING=100", "LIMITS_PUSH_PER_DAY=1000", "LIMITS_PUSH_DENIALS=100",
		"LIMITS_IP_PER_HOUR=100000", "LIMITS_USER_PER_DAY=100000", "LIMITS_DESTINATION_PER_HOUR=50000",
		"LIMITS_DESTINATION_PER_DAY=50000")
}

func Offered(f Flow) bool {
	return slices.ContainsFunc(f.MethodList, func(m Method) bool { return m.Name == "PUSH" })
}

// Unlimited lifts the caps on messages and none of the bounds on pushes.
var Unlimited = []string{"LIMITS_IP_PER_HOUR=100000", "LIMITS_USER_PER_DAY=100000",
	"LIMITS_DESTINATION_PER_HOUR=50000", "LIMITS_DESTINATION_PER_DAY=50000"}

var issued = regexp.MustCompile(`,"iat":[0-9]+`)

// Undated returns a proof with another time, correctly signed.
func (p Pocket) Undated(t *testing.T, h Headers, iat string) Headers {
	t.Helper()
	parts := strings.Split(h["device-signature"], ".")
	claims, err := B64.DecodeString(parts[1])
	if err != nil || !issued.Match(claims) {
		t.Fatalf("claims %s: %v", claims, err)
	}
	signed := parts[0] + "." + B64.EncodeToString(issued.ReplaceAll(claims, []byte(iat)))
	sig := ed25519.Sign(p.Key.(ed25519.PrivateKey), []byte(signed))
	return Headers{"device-signature": signed + "." + B64.EncodeToString(sig)}
}
