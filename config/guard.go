package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Guard names the login services whose tokens are accepted (D-EXT-12), and says whether requests of gateways for a host
// without a route pass (D-EXT-11).
type Guard struct {
	UnknownHost string        `key:"unknown_host" oneof:"allow|refuse" default:"allow"`
	Issuers     []string      `key:"issuers" records:"true"`
	Timeout     time.Duration `key:"timeout" range:"100ms..10s" default:"3s"`
	CAFile      string        `key:"ca_file"`
}

// Refuse is the value of Guard.UnknownHost that refuses.
const Refuse = "refuse"

// Issuer is a login service: an item of Guard.Issuers.
type Issuer struct{ Issuer, JWKSURL, Audience, SubjectClaim string }

// ParsedIssuers returns the issuers. It is for valid settings and leaves out what cannot be read.
func (g Guard) ParsedIssuers() []Issuer {
	var all []Issuer
	for _, text := range g.Issuers {
		if i, err := parseIssuer(text); err == nil {
			all = append(all, i)
		}
	}
	return all
}

// parseIssuer reads name=value pairs that spaces separate.
func parseIssuer(text string) (i Issuer, err error) {
	fields := map[string]*string{"issuer": &i.Issuer, "jwks_url": &i.JWKSURL, "audience": &i.Audience,
		"subject_claim": &i.SubjectClaim}
	for _, one := range strings.Fields(text) {
		name, value, ok := strings.Cut(one, "=")
		at := fields[name]
		if !ok || value == "" || at == nil || *at != "" {
			return i, fmt.Errorf("%s: want issuer=…, jwks_url=…, audience=… and perhaps subject_claim=…, once each",
				quote(one))
		}
		*at = value
	}
	if i.Issuer == "" || i.JWKSURL == "" || i.Audience == "" {
		return i, fmt.Errorf("%s: issuer, jwks_url and audience are needed", quote(text))
	}
	return i, nil
}

// maxIssuers bounds the issuers: each has its own keys in memory.
const maxIssuers = 16

func (k *checker) guard() {
	const key = "guard.issuers"
	var names []string
	for _, text := range k.c.Guard.Issuers {
		i, err := parseIssuer(text)
		if err != nil {
			k.refuse(true, key, err.Error())
			continue
		}
		u, err := url.Parse(i.JWKSURL)
		k.refuse(err != nil || u.Host == "" || u.User != nil || u.Fragment != "" ||
			u.Scheme != "https" && !(u.Scheme == "http" && Loopback(u.Hostname())), key,
			quote(i.JWKSURL)+" must be https://host with port and path where needed, or http:// to loopback")
		k.refuse(slices.Contains(names, i.Issuer), key, quote(i.Issuer)+" is given twice")
		k.refuse(i.Issuer == k.c.Tokens.Issuer, key, quote(i.Issuer)+" is "+k.named("tokens.issuer"), "tokens.issuer")
		names = append(names, i.Issuer)
	}
	k.refuse(len(names) > maxIssuers, key, fmt.Sprintf("must be at most %d", maxIssuers))
}
