package config

import (
	"net/url"
	"slices"
	"time"
)

// KYC configures the meaning of documents and the verification of identities (D-KYC-05, D-KYC-07, D-INF-06).
type KYC struct {
	FrontType           int           `key:"front_type" range:"1..1000000" default:"1"`
	BackType            int           `key:"back_type" range:"1..1000000" default:"2"`
	SelfieType          int           `key:"selfie_type" range:"1..1000000" default:"3"`
	AddressType         int           `key:"address_type" range:"1..1000000" default:"4"`
	AccountsPerIdentity int           `key:"accounts_per_identity" range:"1..1000" default:"1"`
	IdentityURL         string        `key:"identity_url"`
	IdentityCAFile      string        `key:"identity_ca_file"`
	IdentityTimeout     time.Duration `key:"identity_timeout" range:"100ms..30s" default:"5s"`
}

func (k *checker) kyc() {
	c := k.c.KYC
	types := []int{c.FrontType, c.BackType, c.SelfieType, c.AddressType}
	slices.Sort(types)
	k.refuse(len(slices.Compact(types)) < 4, "kyc.front_type", "must differ from the other types of documents of kyc")
	if c.IdentityURL == "" {
		return
	}
	u, err := url.Parse(c.IdentityURL)
	k.refuse(!plainURL(c.IdentityURL) || err == nil && u.Scheme == "http" && !(k.c.Dev && Loopback(u.Hostname())),
		"kyc.identity_url", "must be https://host/path, or in development mode http:// to loopback")
}
