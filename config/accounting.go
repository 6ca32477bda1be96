package config

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// Accounting configures where journals are posted (D-ADM-01).
type Accounting struct {
	URL    string `key:"url"`
	Secret Secret `key:"secret"`
	CAFile string `key:"ca_file"`
}

func (k *checker) accounting() {
	a := k.c.Accounting
	k.webhookSecrets("accounting.secret", a.Secret)
	k.refuse((a.URL == "") != (a.Secret == ""), "accounting.secret",
		"must be set if and only if "+k.named("accounting.url")+" is", "accounting.url")
	if a.URL == "" {
		return
	}
	u, err := url.Parse(a.URL)
	k.refuse(!plainURL(a.URL) || err == nil && u.Scheme == "http" && !loopback(u.Hostname()), "accounting.url",
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
