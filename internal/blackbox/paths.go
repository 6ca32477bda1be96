package blackbox

const StartPath = "/auth/2fa/challenge/start"

const AddressesPath = "/asset/withdrawal-addresses"

func AddressBody(currency, network, address, name string) map[string]string {
	return map[string]string{"currencyCode": currency, "networkCode": network, "address": address, "name": name}
}

const MailPath = "/admin/user/update-email"

// The asset that is moved: BTC on its own network, the first seeded asset.
const (
	MoneyAsset    = 1
	MoneyDecimals = 8
	MoneyUnit     = 100_000_000
	AdjustPath    = "/admin/transaction/adjust-balance"
)

// OnePixel is a PNG of one pixel, in base64.
const OnePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
