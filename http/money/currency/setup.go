package currency

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
	"castellan/http/rest"
)

// The fields of the three sections, as administrators send and list them. Ids of the wallet
// provider have no meaning here (D-CUR-03).

type currencyFields struct {
	Code              string        `json:"code" example:"USDT" doc.pattern:"^[A-Za-z0-9._-]{1,32}$"`
	Network           string        `json:"network" doc.maxLength:"200" example:"TRX"`
	Image             string        `json:"image" doc:"URL" doc.maxLength:"2048" example:"https://cdn.example.com/u.svg"`
	Name              string        `json:"name" doc.maxLength:"200" example:"Tether USD"`
	FormatAssetPrice  amount.Amount `json:"formatassetprice" example:"0.01"`
	FormatQuantity    amount.Amount `json:"formatorderquantity" example:"0.000001"`
	DepositEnable     bool          `json:"depositEnable"`
	WithdrawEnable    bool          `json:"withdrawEnable"`
	PNGImage          string        `json:"pngimage" doc:"path" doc.maxLength:"2048" example:"/coins/usdt.png"`
	MarketDataID      string        `json:"marketdataid" doc.maxLength:"200" example:"825"`
	Threshold         amount.Amount `json:"threshold" example:"10"`
	MarketListingSlug string        `json:"marketlistingslug" doc.maxLength:"200" example:"tether"`
}

func (f currencyFields) record() currency.Currency {
	return currency.Currency{Code: f.Code, Name: f.Name, Network: f.Network, Image: f.Image, PNGImage: f.PNGImage,
		MarketDataID: f.MarketDataID, MarketListingSlug: f.MarketListingSlug, PriceFormat: f.FormatAssetPrice,
		QuantityFormat: f.FormatQuantity, Threshold: f.Threshold, Deposit: f.DepositEnable, Withdraw: f.WithdrawEnable}
}

type networkFields struct {
	NetworkCode    string `json:"networkCode" example:"TRX" doc.pattern:"^[A-Za-z0-9._-]{1,32}$"`
	NetworkName    string `json:"networkName" doc.maxLength:"200" example:"TRON"`
	KYTNetworkName string `json:"kytNetworkName" doc:"name in transaction screening" doc.maxLength:"200" example:"tron"`
}

func (f networkFields) record() currency.Network {
	return currency.Network{Code: f.NetworkCode, Name: f.NetworkName, KYTName: f.KYTNetworkName}
}

type linkFields struct {
	CurrencyCode            string  `json:"currencyCode" example:"USDT"`
	NetworkCode             string  `json:"networkCode" example:"TRX"`
	ScreeningSymbol         string  `json:"screeningSymbol" doc.maxLength:"200" example:"USDT_TRX"`
	DepositEnable           bool    `json:"depositEnable"`
	WithdrawEnable          bool    `json:"withdrawEnable"`
	FormatPrecision         string  `json:"formatPrecision" doc:"decimals, or a pattern that contains them" example:"6"`
	MintAddress             string  `json:"mintAddress" blank:"ok" doc.maxLength:"200"`
	WalletProviderID        rest.ID `json:"walletProviderId" doc:"id at the wallet provider" example:"3"`
	DepositAddressAvailable bool    `json:"depositAddressAvailable"`
	WalletCurrencyID        rest.ID `json:"walletCurrencyId" doc:"id at the wallet provider" example:"44"`
	NetworkID               rest.ID `json:"networkId" doc:"id at the wallet provider"`
}

func (f linkFields) record() currency.Link {
	return currency.Link{CurrencyCode: f.CurrencyCode, NetworkCode: f.NetworkCode, Pair: currency.Pair{
		FormatPrecision: f.FormatPrecision, ScreeningSymbol: f.ScreeningSymbol, MintAddress: f.MintAddress,
		DepositAddress: f.DepositAddressAvailable, WalletProviderID: int64(f.WalletProviderID),
		WalletCurrencyID: int64(f.WalletCurrencyID), ProviderNetworkID: int64(f.NetworkID), Deposit: f.DepositEnable,
		Withdraw: f.WithdrawEnable}}
}

// linkLimit is the optional limit of a pair.
type linkLimit struct {
	MaxDeposit rest.Nullable[amount.Amount] `json:"maxDeposit" doc:"extension: larger ones need approval" example:"5000"`
}

func (f linkLimit) of(l currency.Link) currency.Link {
	l.MaxDeposit, l.KeepMaxDeposit = f.MaxDeposit.Pointer(), !f.MaxDeposit.Sent
	return l
}

// switched is an optional section.
type switched struct {
	Enabled bool `json:"enabled" doc:"false: the section is skipped"`
}

type setupRequest struct {
	Currency struct {
		switched
		currencyFields
	} `json:"currency"`
	CurrencyNetwork struct {
		switched
		networkFields
	} `json:"currencyNetwork"`
	CurrencyOfNetwork struct {
		switched
		linkFields
		linkLimit
	} `json:"currencyOfNetwork"`
}

type updateRequest struct {
	Currency struct {
		ID rest.ID `json:"id"`
		switched
		currencyFields
	} `json:"currency"`
	CurrencyNetwork struct {
		ID rest.ID `json:"id"`
		switched
		networkFields
	} `json:"currencyNetwork"`
	CurrencyOfNetwork struct {
		ID rest.ID `json:"id"`
		switched
		linkFields
		linkLimit
	} `json:"currencyOfNetwork"`
}

// assetsSetup is the answer to both: the created or updated records and their ids.
type assetsSetup struct {
	Currency            bool   `json:"currency" doc:"whether the currency was created or updated"`
	CurrencyID          *int64 `json:"currencyId" doc:"null: none"`
	CurrencyNetwork     bool   `json:"currencyNetwork" doc:"whether the network was created or updated"`
	CurrencyNetworkID   *int64 `json:"currencyNetworkId" doc:"null: none" example:"4"`
	CurrencyOfNetwork   bool   `json:"currencyOfNetwork" doc:"whether the link was created or updated"`
	CurrencyOfNetworkID *int64 `json:"currencyOfNetworkId" doc:"null: none" example:"12"`
}

func shown(r currency.Result) assetsSetup {
	id := func(o currency.Outcome) *int64 {
		if o.ID == 0 {
			return nil
		}
		return &o.ID
	}
	return assetsSetup{r.Currency.Done, id(r.Currency), r.Network.Done, id(r.Network), r.Pair.Done, id(r.Pair)}
}

// trySetup is the example request without the ids and a name.
const trySetup = `{"currency":{%[1]s"enabled":true,"code":"AVAX","network":"AVAXC",` +
	`"image":"https://cdn.example.com/avax.svg","name":"%[4]s","formatassetprice":0.01,"formatorderquantity":0.0001,` +
	`"depositEnable":true,"withdrawEnable":true,"pngimage":"/coins/avax.png","marketdataid":"5805","threshold":0.5,` +
	`"marketlistingslug":"avalanche"},` +
	`"currencyNetwork":{%[2]s"enabled":true,"networkCode":"AVAXC","networkName":"Avalanche C-Chain",` +
	`"kytNetworkName":"avalanche"},` +
	`"currencyOfNetwork":{%[3]s"enabled":true,"currencyCode":"AVAX","networkCode":"AVAXC","screeningSymbol":"AVAX",` +
	`"depositEnable":true,"withdrawEnable":true,"formatPrecision":"18","mintAddress":"","walletProviderId":3,` +
	`"depositAddressAvailable":true,"walletCurrencyId":44,"networkId":43114}}`

// section is a section for the domain.
func section[T any](s switched, record T) currency.Section[T] {
	return currency.Section[T]{Enabled: s.Enabled, Record: record}
}

func (g Group) setup(ctx context.Context, who rest.Caller, in setupRequest) (assetsSetup, error) {
	c, n, l := in.Currency, in.CurrencyNetwork, in.CurrencyOfNetwork
	r, err := g.Service.Setup(ctx, who.By(), currency.Setup{Currency: section(c.switched, c.record()),
		Network: section(n.switched, n.record()), Pair: section(l.switched, l.of(l.record()))})
	return shown(r), err
}

func (g Group) update(ctx context.Context, who rest.Caller, in updateRequest) (assetsSetup, error) {
	c, n, l := in.Currency.record(), in.CurrencyNetwork.record(), in.CurrencyOfNetwork.of(in.CurrencyOfNetwork.record())
	c.ID, n.ID, l.ID = int64(in.Currency.ID), int64(in.CurrencyNetwork.ID), int64(in.CurrencyOfNetwork.ID)
	r, err := g.Service.Update(ctx, who.By(), currency.Setup{Currency: section(in.Currency.switched, c),
		Network: section(in.CurrencyNetwork.switched, n), Pair: section(in.CurrencyOfNetwork.switched, l)})
	return shown(r), err
}

type activation struct {
	ID       rest.ID `json:"id"`
	IsActive bool    `json:"isActive"`
}

type activateRequest struct {
	Currency          activation `json:"currency"`
	CurrencyOfNetwork activation `json:"currencyOfNetwork"`
}

// activated is the state of both after the change.
type activated struct {
	Currency          currencyActiveRecord `json:"currency"`
	CurrencyOfNetwork currencyActiveRecord `json:"currencyOfNetwork"`
}

type currencyActiveRecord struct {
	ID       int64 `json:"id"`
	IsActive bool  `json:"isActive"`
}

func (g Group) activate(ctx context.Context, who rest.Caller, in activateRequest) (rest.Data[activated], error) {
	c, p := in.Currency, in.CurrencyOfNetwork
	out := activated{currencyActiveRecord{int64(c.ID), c.IsActive}, currencyActiveRecord{int64(p.ID), p.IsActive}}
	return rest.Data[activated]{Data: out},
		g.Service.Activate(ctx, who.By(), int64(c.ID), c.IsActive, int64(p.ID), p.IsActive)
}
