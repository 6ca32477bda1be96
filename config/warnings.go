package config

import (
	"net/url"
	"slices"
)

// owaspArgon2 lists the least memory in KiB for a number of passes (OWASP
// Password Storage Cheat Sheet, argon2id).
var owaspArgon2 = []struct{ time, memoryKiB int }{{1, 47104}, {2, 19456}, {3, 12288}, {4, 9216}, {5, 7168}}

// The endpoints by which an address comes into a book.
const (
	addAddress    = "POST /asset/withdrawal-addresses"
	changeAddress = "PATCH /asset/withdrawal-addresses"
)

// Warnings lists what is accepted and probably not meant, for the log at the
// start. It is empty in development mode.
func (c Config) Warnings() []string {
	if c.Dev {
		return nil
	}
	var w []string
	warn := func(when bool, text string) {
		if when {
			w = append(w, text)
		}
	}
	strong := slices.ContainsFunc(owaspArgon2, func(o struct{ time, memoryKiB int }) bool {
		return c.Password.Argon2Time >= o.time && c.Password.Argon2MemoryKiB >= o.memoryKiB
	})
	warn(!strong, "password.argon2_memory_kib and password.argon2_time are below the OWASP minimum (19456 KiB with 2 "+
		"passes, or its equals): stolen hashes are cheap to guess")
	warn(!c.Mail.Configured(), "mail.host is empty: the method MAIL is not offered, and the password reset needs it")
	warn(!c.SMS.Configured(), "sms.url is empty: the method SMS is not offered, and the password reset needs it")
	u, err := url.Parse(c.HTTP.PublicURL)
	warn(err == nil && u.Scheme == "http" && !loopback(u.Hostname()),
		"http.public_url is not https: tokens would cross the network in the clear")
	warn(!loopbackAddr(c.HTTP.Addr) && c.Source("http.public_url") == FromDefault,
		"http.public_url is not set and only guessed from http.addr: device signatures name it")
	warn(err == nil && u.Scheme == "https" && len(c.HTTP.TrustedProxies) == 0,
		"http.trusted_proxies is empty, and https of http.public_url ends at a proxy: every client has its address, so "+
			"bounds for one address hold for all clients together")
	warn(c.HTTP.CountryHeader != "" && len(c.HTTP.TrustedProxies) == 0,
		"http.country_header has no effect without http.trusted_proxies")
	warn(c.HTTP.MaxConnectionsPerIP > 0 && len(c.HTTP.TrustedProxies) > 0,
		"http.max_connections_per_ip also bounds the connections of http.trusted_proxies, which are everybody's")
	warn(c.Geo.AllowUnknown, "geo.allow_unknown is set: a country filter keeps nobody out whose country is not known")
	warn(c.Push.Enabled && c.Push.AllowPrivate && len(c.Push.Hosts) == 0,
		"push.allow_private without push.hosts lets whoever enrols a device have this service call any address of its "+
			"network")
	guarded := c.MFA.Guarded
	warn(guarded[addAddress] != "" && guarded[changeAddress] == "",
		"mfa.guarded holds "+addAddress+" without "+changeAddress+": who may not add an address can still put another in "+
			"the place of one")
	for _, p := range c.Firewall.BypassCIDRs {
		warn(p.Bits() == 0, "firewall.bypass_cidrs holds "+p.String()+": no request rule applies to anyone")
	}
	warn(c.Cluster.GossipAddr == "" && len(c.Cluster.Join) > 0,
		"cluster.join has no effect without cluster.gossip_addr: this node is alone")
	warn(c.Cluster.GossipAddr != "" && c.Files.S3URL == "",
		"files.s3_url is empty: every node of the cluster needs the same files.folder, on a file system that they share")
	return w
}
