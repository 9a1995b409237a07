"""Makes the modules of rehearsal/program importable as ddprun has them."""
import pathlib
import sys
import types

package = types.ModuleType("ddprun_rehearsal")
package.__path__ = [str(pathlib.Path(__file__).resolve().parents[2] / "rehearsal/program")]
sys.modules["ddprun_rehearsal"] = package
