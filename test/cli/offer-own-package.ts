import { offerOwnPackage } from "../../src/cli/project/own-package.ts";

/** For `node --import`: what the CLI does for a project where nothing is installed. */
offerOwnPackage();
