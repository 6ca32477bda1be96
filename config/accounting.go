package config

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// Accounting configures the delivery of journals (D-ADM-01).
type Accounting struct {
	URL    string `key:"url"`
	Secret Secret `key:"secret"`
	CAFile string `key:"ca_file"`
}

// Audit configures the delivery of audit checkpoints, and how long rows stay in the database (D-EXT-03).
type Audit struct {
	AnchorURL    string `key:"anchor_url"`
	AnchorSecret Secret `key:"anchor_secret"`
	AnchorCAFile string `key:"anchor_ca_file"`

	Keep time.Duration `key:"keep" range:"0s..876000h"`
}

// minAuditKeep keeps the rows of pending operations and of recent questions in the database.
const minAuditKeep = 30 * 24 * time.Hour

func (k *checker) accounting() {
	a, b := k.c.Accounting, k.c.Audit
	k.signed("accounting.", a.URL, a.Secret)
	k.signed("audit.anchor_", b.AnchorURL, b.AnchorSecret)
	k.refuse(b.Keep > 0 && b.Keep < minAuditKeep, "audit.keep", "must be 720h or more, or 0s, which keeps all rows")
}

// signed checks an address to which files are posted, and their signature.
func (k *checker) signed(prefix, to string, secret Secret) {
	k.webhookSecrets(prefix+"secret", secret)
	k.refuse((to == "") != (secret == ""), prefix+"secret",
		"must be set if and only if "+k.named(prefix+"url")+" is", prefix+"url")
	if to == "" {
		return
	}
	u, err := url.Parse(to)
	k.refuse(!plainURL(to) || err == nil && u.Scheme == "http" && !Loopback(u.Hostname()), prefix+"url",
		"must be https://host with port and path where needed, or http:// to loopback")
}

// webhookSecrets checks secrets of Standard Webhooks.
func (k *checker) webhookSecrets(key string, secrets Secret) {
	for _, secret := range strings.Fields(secrets.Reveal()) {
		coded, ok := strings.CutPrefix(secret, "whsec_")
		b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(coded, "="))
		k.refuse(!ok || err != nil || len(b) < 24 || len(b) > 64, key, "must be whsec_ and base64 of 24 to 64 bytes")
	}
}
