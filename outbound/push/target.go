package push

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"strings"

	"castellan/domain/delivery/notification"
)

// The kinds of targets.
const (
	webPushKind = "webpush"
	webhookKind = "webhook"
)

// target is the address at which a device is woken. As JSON it is the To of a message of the channel Push, in the form
// in which the device gave it when it was enrolled:
//
//	{"type":"webpush","endpoint":"https://…","keys":{"p256dh":"…","auth":"…"}}
//	{"type":"webhook","url":"https://…"}
//
// The first is a browser's PushSubscription with a type. A client that has an endpoint can send to it, so a target is
// in no log and no error.
type target struct {
	Type     string     `json:"type"`
	Endpoint string     `json:"endpoint,omitempty"`
	Keys     deviceKeys `json:"keys,omitzero"`
	URL      string     `json:"url,omitempty"`
}

// deviceKeys are the keys of a subscription, in base64url.
type deviceKeys struct {
	P256dh string `json:"p256dh"` // the device's public key, an uncompressed point
	Auth   string `json:"auth"`   // 16 bytes shared by the device and this service
}

// wakeUp is the content that a device receives. As JSON it is the Text of a message of the channel Push. It only
// announces that there is something to read: the device requests the rest under its signature. Other fields of a
// message are never sent.
type wakeUp struct {
	ChallengeID string `json:"challengeId,omitempty"`
	Action      string `json:"action,omitempty"`
	Expire      int64  `json:"expire,omitempty"` // seconds left to answer when it was written
	// Notice is the text of a notification; such a message concerns no challenge.
	Notice *notification.Message `json:"notice,omitempty"`
}

const (
	maxTargetBytes  = 4096
	maxAddressBytes = 2048
	maxWakeupBytes  = 3072
	maxExpire       = 3600 // seconds; no challenge lives longer
)

func parseTarget(text string) (target, error) {
	var t target
	if len(text) > maxTargetBytes || json.Unmarshal([]byte(text), &t) != nil {
		return target{}, errors.New("malformed target")
	}
	if t.Type != webPushKind && t.Type != webhookKind {
		return target{}, errors.New("target of an unknown type")
	}
	return t, nil
}

func (t target) address() string {
	if t.Type == webPushKind {
		return t.Endpoint
	}
	return t.URL
}

// parseWakeup decodes the message and keeps only its declared fields.
func parseWakeup(text string) (wakeUp, error) {
	var w wakeUp
	if len(text) > maxWakeupBytes || json.Unmarshal([]byte(text), &w) != nil ||
		(w.ChallengeID == "") == (w.Notice == nil) {
		return wakeUp{}, errors.New("malformed message")
	}
	w.Expire = min(max(w.Expire, 0), maxExpire)
	return w, nil
}

func (w wakeUp) json() []byte {
	b, _ := json.Marshal(w) // strings and a number: it cannot fail
	return b
}

// parseAddress never quotes the address.
func parseAddress(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || len(raw) > maxAddressBytes || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("malformed address of the target")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("target is not https")
	case u.User != nil || strings.Contains(raw, "#"):
		return nil, errors.New("address of the target contains a user or a fragment")
	}
	return u, nil
}

// Host returns the host of a message of the channel Push, without its port and in a normal form; "" if the target is
// malformed.
func Host(to string) string {
	t, err := parseTarget(to)
	if err != nil {
		return ""
	}
	u, err := parseAddress(t.address())
	if err != nil {
		return ""
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return host
}

// listed reports whether a host is in the list of permitted hosts.
func listed(hosts []string, host string) bool {
	if len(hosts) == 0 {
		return true
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, h := range hosts {
		if below, all := strings.CutPrefix(strings.ToLower(h), "*"); all && strings.HasSuffix(host, below) ||
			strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}
