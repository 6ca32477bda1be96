package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Providers names the accounts of the house at other platforms (D-PRC-01). The names in a map are shown; the keys and
// secrets of Accounts are not.
type Providers struct {
	Exchanges map[string]string `key:"exchanges"`
	Accounts  Secrets           `key:"accounts"`
	KeyHeader string            `key:"key_header" default:"X-MBX-APIKEY"`
	Files     map[string]string `key:"files"`
	Timeout   time.Duration     `key:"timeout" range:"1s..30s" default:"10s"`
	Keep      time.Duration     `key:"keep" range:"24h..87600h" default:"2160h"`
	CAFile    string            `key:"ca_file"`
}

// providerPattern is that of domain/money/provider.Named.
var providerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

const wantProvider = " must consist of letters, digits, dots, dashes and underscores"

func (k *checker) providers() {
	p := k.c.Providers
	k.refuse(!headerPattern.MatchString(p.KeyHeader), "providers.key_header", "is not the name of a header")
	for _, name := range slices.Sorted(maps.Keys(p.Exchanges)) {
		k.refuse(!providerPattern.MatchString(name), "providers.exchanges", quote(name)+wantProvider)
		u, err := url.Parse(p.Exchanges[name])
		k.refuse(!plainURL(p.Exchanges[name]) || err == nil && u.Scheme == "http" && !Loopback(u.Hostname()),
			"providers.exchanges", quote(name)+" must be https://host with port and path where needed, or http:// to loopback")
		has := func(account string) bool { return strings.HasPrefix(account, name+"/") }
		k.refuse(!slices.ContainsFunc(slices.Collect(maps.Keys(p.Accounts)), has), "providers.accounts",
			"has no account at "+quote(name), "providers.exchanges")
	}
	for _, account := range slices.Sorted(maps.Keys(p.Accounts)) {
		exchange, name, _ := strings.Cut(account, "/")
		_, known := p.Exchanges[exchange]
		k.refuse(!known || !providerPattern.MatchString(name) || name == "AllAccounts", "providers.accounts",
			quote(account)+" is not exchange/account with an exchange of providers.exchanges", "providers.exchanges")
		key, secret, _ := strings.Cut(p.Accounts[account].Reveal(), ":")
		k.refuse(key == "" || secret == "", "providers.accounts", quote(account)+" must have key:secret")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		_, twice := p.Exchanges[name]
		k.refuse(!providerPattern.MatchString(name), "providers.files", quote(name)+wantProvider)
		k.refuse(twice, "providers.files", quote(name)+" is an exchange too", "providers.exchanges")
		k.refuse(p.Files[name] == "", "providers.files", quote(name)+" must name a file")
	}
}
