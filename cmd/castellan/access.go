package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"castellan/cmd/app"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/sorting"
	"castellan/domain/session/allowedip"
	"castellan/domain/session/geofilter"
	"castellan/persistence/account"
	"castellan/persistence/session"
)

type userAllowIPCmd struct {
	userArg
	CIDR   []string `arg:"" optional:"" help:"Addresses or networks, such as 192.0.2.7 (default: only print the list)."`
	Remove bool     `help:"Remove the networks instead of adding them."`
	Clear  bool     `help:"Clear the list first."`
}

func (userAllowIPCmd) Help() string {
	return `Limits the networks from which an account can use the endpoints that submit its
identity and additional information. Without networks, all addresses are allowed.
Prints the new list, one network per line.

  castellan user allow-ip +905321234567 192.0.2.0/24 2001:db8::/32
  castellan user allow-ip +905321234567                  prints the list
  castellan user allow-ip +905321234567 192.0.2.0/24 --remove
  castellan user allow-ip +905321234567 --clear          allows all addresses

The change takes effect on every running node within one second.`
}

func (c userAllowIPCmd) Run(e *env) error {
	var networks []netip.Prefix
	for _, text := range c.CIDR {
		n, err := allowedip.Parse(text)
		if err != nil {
			return err
		}
		networks = append(networks, n)
	}
	if c.Remove && (c.Clear || len(networks) == 0) {
		return errors.New("--remove requires networks and excludes --clear")
	}
	v, err := app.OpenExisting(e.ctx, e.cfg)
	if err != nil {
		return err
	}
	defer v.Close()
	u, err := c.find(e, v)
	if err != nil {
		return err
	}
	store, now := session.NewAllowedIPs(v.DB), time.Now()
	before, err := store.Networks(e.ctx, u.ID)
	if err != nil {
		return err
	}
	after := c.apply(before, networks)
	if len(after) > allowedip.MaxNetworks {
		return fmt.Errorf("an account may have at most %d networks", allowedip.MaxNetworks)
	}
	if writes := allowedip.Change(u.ID, before, after, now); len(writes) > 0 {
		what := audit.Record{Action: "USER_ALLOW_IP", UserID: u.ID, Target: u.ID, Detail: difference(before, after)}
		if err := v.Operate(e.ctx, change.AllowedIPs, what, writes...); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return e.print(nil, "no networks: all addresses are allowed")
	}
	for _, n := range after {
		fmt.Fprintln(e.out, n)
	}
	return nil
}

// apply returns the list after the command.
func (c userAllowIPCmd) apply(before, networks []netip.Prefix) (after []netip.Prefix) {
	if !c.Clear {
		after = slices.Clone(before)
	}
	for _, n := range networks {
		after = slices.DeleteFunc(after, func(o netip.Prefix) bool { return o == n })
		if !c.Remove {
			after = append(after, n)
		}
	}
	sorting.Func(after, netip.Prefix.Compare)
	return after
}

// maxDetail bounds the networks that an audit row of a change lists.
const maxDetail = 20

// difference names the added and the removed networks.
func difference(before, after []netip.Prefix) string {
	var parts []string
	for sign, lists := range map[string][2][]netip.Prefix{"+": {after, before}, "-": {before, after}} {
		for _, n := range lists[0] {
			if !slices.Contains(lists[1], n) {
				parts = append(parts, sign+n.String())
			}
		}
	}
	slices.Sort(parts)
	if n := len(parts); n > maxDetail {
		parts = append(parts[:maxDetail], fmt.Sprintf("and %d more", n-maxDetail))
	}
	return strings.Join(parts, " ")
}

type userClearGeofilterCmd struct{ userArg }

func (userClearGeofilterCmd) Help() string {
	return `Removes every country from the country filter of an account, for a user whom the
filter locks out. All countries are then allowed. As with any change of the filter,
all sessions of the account end and its open challenges are closed. If the filter is
already empty, nothing changes.`
}

func (c userClearGeofilterCmd) Run(e *env, v *app.Deployment) error {
	u, err := c.find(e, v)
	if err != nil {
		return err
	}
	notices, err := v.Notices(e.cfg)
	if err != nil {
		return err
	}
	filters := geofilter.Service{
		Store:   session.NewGeofilters(v.DB),
		Users:   account.NewUsers(v.DB),
		Commit:  v.DB,
		Notices: notices,
		Now:     time.Now,
	}
	codes, err := filters.Clear(e.ctx, u.ID, audit.Operator)
	if len(codes) == 0 {
		return e.print(err, "nothing to clear: all countries are allowed")
	}
	return e.print(err, "cleared", strings.Join(codes, ","))
}
